# SPDX-License-Identifier: MIT
CHECK_UNIT += tests/uapi/test_uapi
