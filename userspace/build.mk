# SPDX-License-Identifier: MIT
# User space: each library has a fragment of its own.

-include $(sort $(wildcard userspace/*/build.mk))
