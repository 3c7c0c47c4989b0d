# SPDX-License-Identifier: MIT
CHECK_HOST += tests/formal/test_queue
CHECK_HOST_FULL += tests/formal/test_queue,--all
