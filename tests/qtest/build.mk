# SPDX-License-Identifier: MIT
#
# The qtests are built by QEMU's own build (meson.build here). This one needs no QEMU.
CHECK_HOST += tests/qtest/check-patch
