# SPDX-License-Identifier: MIT
# The manual. Sources are copied beside the headers they quote and the parts made from code: the table of
# instructions (spyre-as), the ioctls (kernel-doc), so that each fact is written once.
DOC_SRC := $(wildcard Documentation/*.rst) Documentation/conf.py
DOC_OUT := $(B)/docs/src/Documentation
KERNEL_DOC ?= $(firstword $(wildcard $(SPYRE_CACHE)/kernel/stock/build/scripts/kernel-doc \
	$(SPYRE_CACHE)/kernel/stock/usr/lib/linux-kbuild-*/scripts/kernel-doc) kernel-doc)

$(B)/docs/html/index.html: $(DOC_SRC) $(wildcard Documentation/examples/* include/spyre/*.h) include/uapi/drm/spyre_accel.h $(B)/tools/spyre-as \
	$(B)/tests/unit/test_num $(B)/tools/spyre-bench-timing qemu-device/model/time_params.h
	$(Q)rm -rf $(B)/docs/src
	$(Q)mkdir -p $(DOC_OUT)
	$(Q)cp -r $(DOC_SRC) Documentation/examples $(DOC_OUT)/
	$(Q)cp -r include $(B)/docs/src/
	$(Q)cp qemu-device/model/time_params.h $(DOC_OUT)/
	$(Q)$(B)/tools/spyre-bench-timing --rst > $(DOC_OUT)/timing-generated.rst
	$(Q)$(B)/tools/spyre-as --rst > $(DOC_OUT)/isa-generated.rst
	$(Q)$(B)/tests/unit/test_num --rst > $(DOC_OUT)/numbers-generated.rst
	$(Q)$(KERNEL_DOC) -rst include/uapi/drm/spyre_accel.h > $(DOC_OUT)/uapi-generated.rst
	$(Q)sphinx-build -q -W --keep-going -b html -d $(B)/docs/doctrees $(DOC_OUT) $(B)/docs/html

.PHONY: docs
docs: $(B)/docs/html/index.html
	@echo "manual: $(B)/docs/html/index.html"

# A warning of Sphinx fails the check.
CHECK_DEPS += $(B)/docs/html/index.html
