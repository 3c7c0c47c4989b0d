# SPDX-License-Identifier: MIT
CHECK_HOST += tests/vm/test_vm,$(B)
