# SPDX-License-Identifier: GPL-2.0-only
#
# spyre.ko, its checks, and what a system needs beside it.
#
# Kbuild writes beside the sources it builds, so they are copied below $(B) first; a file is copied
# when it changed and Kbuild rebuilds what depends on it.
#
#   make driver         $(B)/kernel/spyre.ko for the stock kernel
#   make kernel-for KDIR=DIR KOUT=DIR   the same for another kernel's build folder; with the KUnit tests and
#                       spyre_kunit.ko that runs them where that kernel has KUnit, and spyre_fail.ko, which makes
#                       steps of the probe fail, where it has kprobes
#   make check-driver   W=1, sparse, checkpatch --strict
#   make check-cocci    the kernel's semantic patches
#   make check-driver-clang   W=1 by clang
#   make check-driver-newest   W=1 for the newest Debian kernel

KERNEL_SRC := $(wildcard kernel/*.c kernel/*.h kernel/tests/* kernel/Kbuild kernel/compat/*) Kbuild \
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
	$(Q)$(call kernel_make,$(KDIR),$(KOUT),KCFLAGS=-Werror SPYRE_KUNIT=1)
	$(Q)for m in spyre spyre_kunit spyre_fail; do ! [ -e $(KOUT)/src/kernel/$$m.ko ] || cp $(KOUT)/src/kernel/$$m.ko $(KOUT)/; done

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

# --- Checks of check-full -----------------------------------------------------

$(B)/deps-full: tools/build/deps-full.txt tools/build/deps.sh tools/build/common.sh
	$(Q)tools/build/deps.sh $<
	$(Q)touch $@

$(B)/kernel-cocci/passed: $(KERNEL_SRC) kernel/cocci.sh | $(KERNEL_READY) $(B)/deps-full
	$(call say,SPATCH,kernel/)
	$(Q)$(call kernel_stage,$(@D))
	$(Q)kernel/cocci.sh $(@D) $(SPYRE_CACHE)/kernel/stock/source
	$(Q)touch $@
.PHONY: check-cocci
check-cocci: $(B)/kernel-cocci/passed
CHECK_FULL_DEPS += $(B)/kernel-cocci/passed

# Compiled only: of a kernel that is only prepared modpost cannot know the symbols that it would export.
define kernel_compile
$(Q)tools/build/own-kernel.sh $(1)
$(call say,KBUILD,$(@D))
$(Q)$(call kernel_stage,$(@D))
$(Q)$(call kernel_make,$(SPYRE_CACHE)/kernel/$(1)/build,$(@D),W=1 KCFLAGS=-Werror KBUILD_MODPOST_WARN=1 \
	$$(cat $(SPYRE_CACHE)/kernel/$(1)/args)) >$(@D)/log 2>&1 || { cat $(@D)/log >&2; exit 1; }
$(Q)touch $@
endef
TREE_DEPS := tools/build/own-kernel.sh tools/build/own-kernel.config
$(B)/kernel-clang/passed: $(KERNEL_SRC) $(TREE_DEPS) | $(B)/deps-full
	$(call kernel_compile,clang)
$(B)/kernel-newest/passed: $(KERNEL_SRC) $(TREE_DEPS) tools/build/newest-kernel.config
	$(call kernel_compile,newest)

.PHONY: check-driver-clang check-driver-newest
check-driver-clang: $(B)/kernel-clang/passed
check-driver-newest: $(B)/kernel-newest/passed
CHECK_FULL_DEPS += $(B)/kernel-clang/passed $(B)/kernel-newest/passed
