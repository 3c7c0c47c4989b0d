# SPDX-License-Identifier: MIT
#
# Tests: each folder below has a fragment of its own.

-include $(sort $(wildcard tests/*/build.mk))

CHECK_HOST += tests/docs
CHECK_HOST_FULL += tests/docs,--all,README.md
