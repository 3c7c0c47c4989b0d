# SPDX-License-Identifier: MIT
CHECK_HOST += tests/scripts/test_scripts,$(B)
CHECK_HOST += tests/scripts/test_stack
CHECK_HOST += tests/scripts/test_pitfalls
CHECK_HOST += tests/scripts/test_run
