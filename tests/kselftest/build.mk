# SPDX-License-Identifier: MIT
#
# Tests of the driver's interface; they run in the machine with a card, as root. The harness is the
# kernel's own, from linux-source.

KST_DIR := $(B)/tests/kselftest
KST_SRC := $(SPYRE_CACHE)/kernel/stock/source/tools/testing/selftests
KST_DRM := $(shell pkg-config --cflags libdrm)
# They share a machine. spyre_fw comes last: for a minute its restarts use up what the driver allows.
KST := spyre_machine spyre_uapi spyre_queue spyre_life spyre_module spyre_buffers spyre_submit spyre_isolation spyre_fw
# They need what is only built for the debug kernel, or that kernel.
KST_DEBUG := spyre_nth spyre_probe
KST_HDR := $(wildcard tests/*.h tests/kselftest/*.h) include/uapi/drm/spyre_accel.h
# Runs for as long as it is told to.
KST_FUZZ := spyre_fuzz

$(KST_DIR)/%.o: tests/kselftest/%.c $(KST_HDR) | $(KERNEL_READY)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -Wno-missing-prototypes -Wno-unused-parameter -Wno-sign-compare -Wno-type-limits $(INC) $(SPYREPROG_INC) -Iqemu-device/model $(KST_DRM) -isystem $(KST_SRC) -c -o $@ $<

$(addprefix $(KST_DIR)/,$(KST) $(KST_DEBUG) $(KST_FUZZ) spyre_sleep): $(KST_DIR)/%: $(KST_DIR)/%.o $(KST_DIR)/spyre_test.o $(SPYREPROG)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $(filter %.o,$^) $(SPYREPROG) -lm

$(KST_DIR)/sha256.o: qemu-device/model/sha256.c qemu-device/model/sha256.h
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -c -o $@ $<
$(KST_DIR)/spyre_fw: $(KST_DIR)/sha256.o
$(KST_DIR)/spyre_machine $(KST_DIR)/spyre_sleep: $(KST_DIR)/spyre_work.o

CHECK_VM += $(addprefix $(KST_DIR)/,$(KST))
CHECK_DEPS += $(addprefix $(KST_DIR)/,$(KST) $(KST_DEBUG) $(KST_FUZZ))
CHECK_DEBUG += tests/kselftest/spyre_kunit $(KST_DIR)/spyre_fuzz,--seconds=60
CHECK_DEBUG += $(addprefix $(KST_DIR)/,$(KST_DEBUG) $(KST))
CHECK_VM_FULL += $(KST_DIR)/spyre_fuzz,--seconds=60
# Eight vectors, addresses that an IOMMU translates, a second card beside.
CHECK_VM_FULL += $(foreach t,spyre_queue spyre_life spyre_buffers spyre_submit,vm:--iommu=intel,vm:--cards=2,$(KST_DIR)/$(t))
# Two cards below one switch, whose memory one reads and writes of the other.
PEERS := $(KST_DIR)/spyre_buffers,-f,peers
CHECK_VM += vm:--cards=2,vm:--switch,$(PEERS) vm:--cards=2,vm:--switch,$(KST_DIR)/spyre_buffers,-t,between_cards
CHECK_DEBUG += vm:--cards=2,vm:--switch,$(PEERS)
CHECK_VM_FULL += vm:--cards=2,vm:--switch,vm:--iommu=intel,$(PEERS) vm:--cards=2,vm:--switch,vm:--iommu=virtio,$(PEERS)
# 200 lives of the module; the words without a number have 20.
CHECK_VM_FULL += SPYRE_LIVES=200,$(KST_DIR)/spyre_module
# Every step; without a number every third.
CHECK_VM_FULL += SPYRE_STRIDE=1,$(KST_DIR)/spyre_life,-t,each_of_two_killed_at_every_step
# A machine of each kind; make check has the one without IOMMU, and one whose IOMMU translates addresses and vectors.
MACHINE := $(KST_DIR)/spyre_machine
CHECK_VM += vm:--iommu=intel,SPYRE_IOMMU=DMA-FQ,SPYRE_VECTORS=8,$(MACHINE)
CHECK_VM_FULL += SPYRE_IOMMU=none,SPYRE_VECTORS=1,$(MACHINE) \
	vm:--iommu=intel-noremap,SPYRE_IOMMU=DMA-FQ,SPYRE_VECTORS=1,$(MACHINE) \
	vm:--iommu=intel,vm:--iommu-mode=strict,SPYRE_IOMMU=DMA,SPYRE_VECTORS=8,$(MACHINE) \
	vm:--iommu=intel,vm:--iommu-mode=passthrough,SPYRE_IOMMU=identity,SPYRE_VECTORS=8,$(MACHINE) \
	vm:--iommu=virtio,SPYRE_IOMMU=DMA-FQ,SPYRE_VECTORS=1,$(MACHINE) \
	vm:--iommu=virtio,vm:--iommu-mode=strict,SPYRE_IOMMU=DMA,SPYRE_VECTORS=1,$(MACHINE) \
	vm:--iommu=virtio,vm:--iommu-mode=passthrough,SPYRE_IOMMU=identity,SPYRE_VECTORS=1,$(MACHINE)
