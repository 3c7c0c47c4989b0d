# SPDX-License-Identifier: MIT
# The program tools, on the card in the process and on the one behind the driver.

CHECK_DEPS += $(tools_prog) $(TOOLS_DIR)/spyre-demo $(TOOLS_DIR)/spyre-train $(SPYRERT_MODEL) $(FW_IMAGE) $(DEMO_NET)
CHECK_HOST += tests/tools/test_tools,$(B) tests/tools/test_install,$(B) tests/tools/test_inject,$(B)
CHECK_HOST_FULL += tests/tools/test_install,$(B),--driver
CHECK_VM += SPYRERT_BACKEND=drm,tests/tools/test_tools,$(B)
