# SPDX-License-Identifier: GPL-2.0-only
#
# spyre.ko, its checks, and what a system needs beside it.
#
# Kbuild writes beside the sources it builds, so they are copied below $(B) first; a file is copied
# when it changed and Kbuild rebuilds what depends on it.
#
#   make driver         $(B)/kernel/spyre.ko for the stock kernel
#   make kernel-for KDIR=DIR KOUT=DIR   the same for another kernel's build folder
#   make check-driver   W=1, sparse, checkpatch --strict

KERNEL_SRC := $(wildcard kernel/*.c kernel/*.h kernel/Kbuild kernel/compat/*) Kbuild \
	$(wildcard include/spyre/*.h) include/uapi/drm/spyre_accel.h
KOUT ?= $(B)/kernel

# $(call kernel_stage,OUT) copies; $(call kernel_make,KDIR,OUT,ARGS) builds.
kernel_stage = mkdir -p $(1)/src && cp --parents -u --preserve=timestamps $(KERNEL_SRC) $(1)/src
kernel_make = $(MAKE) --no-print-directory -s -C $(1) M=$(abspath $(2))/src $(3) modules

$(B)/kernel/spyre.ko: $(KERNEL_SRC) | $(KERNEL_READY)
	$(call say,KBUILD,$@)
	$(Q)$(call kernel_stage,$(@D))
	$(Q)$(call kernel_make,$(KDIR),$(@D),W=1 KCFLAGS=-Werror)
	$(Q)cp $(@D)/src/kernel/spyre.ko $@

ALL += $(B)/kernel/spyre.ko
INSTALL_UDEV += kernel/60-spyre.rules
INSTALL_DKMS += $(KERNEL_SRC) kernel/dkms.conf

.PHONY: driver kernel-for
driver: $(B)/kernel/spyre.ko
kernel-for: | $(KERNEL_READY)
	$(call say,KBUILD,$(KOUT)/spyre.ko)
	$(Q)$(call kernel_stage,$(KOUT))
	$(Q)$(call kernel_make,$(KDIR),$(KOUT),KCFLAGS=-Werror)
	$(Q)cp $(KOUT)/src/kernel/spyre.ko $(KOUT)/spyre.ko

# --- Checks -----------------------------------------------------------------

# A folder of its own: sparse looks at every file, whatever is up to date.
KERNEL_CHECKED := $(filter kernel/%.c kernel/%.h,$(KERNEL_SRC)) include/uapi/drm/spyre_accel.h
$(B)/kernel-check/passed: $(KERNEL_SRC) kernel/check.sh | $(KERNEL_READY)
	$(call say,CHECK,kernel/)
	$(Q)$(call kernel_stage,$(@D))
	$(Q)kernel/check.sh $(KDIR) $(abspath $(@D)) $(SPYRE_CACHE)/kernel/stock/source $(KERNEL_CHECKED)
	$(Q)touch $@

.PHONY: check-driver
check-driver: $(B)/kernel-check/passed
CHECK_DEPS += $(B)/kernel-check/passed
