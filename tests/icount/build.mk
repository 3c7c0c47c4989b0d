# SPDX-License-Identifier: MIT
#
# The guest of test_icount: a BIOS image of 32-bit code with the card's firmware and a job in it.

ICOUNT_DIR := $(B)/tests/icount
ICOUNT_GUEST := $(ICOUNT_DIR)/guest.bin
ICOUNT_FLAGS := -m32 -march=i686 -mgeneral-regs-only -std=gnu11 -O2 -g -ffreestanding -fno-pic -fno-pie \
	-fno-stack-protector -fno-common -fno-asynchronous-unwind-tables -fno-strict-aliasing -fcf-protection=none \
	-Wall -Wextra -Wmissing-prototypes -Wvla -Werror -Iinclude

# M, N and K of guest.c.
$(ICOUNT_DIR)/job/init.bin: $(TOOLS_DIR)/spyre-gen tests/icount/build.mk
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(TOOLS_DIR)/spyre-gen -m 128 -n 256 -k 128 matmul $(@D)

$(ICOUNT_DIR)/guest.o: tests/icount/guest.c tests/icount/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ICOUNT_FLAGS) -MMD -MP -c -o $@ $<

$(ICOUNT_DIR)/start.o: tests/icount/start.S tests/icount/build.mk $(FW_IMAGE) $(ICOUNT_DIR)/job/init.bin
	$(call say,AS,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -m32 -g -DFIRMWARE='"$(FW_IMAGE)"' -DJOB='"$(ICOUNT_DIR)/job/init.bin"' -c -o $@ $<

$(ICOUNT_GUEST): $(ICOUNT_DIR)/start.o $(ICOUNT_DIR)/guest.o tests/icount/guest.lds
	$(call say,LD,$@)
	$(Q)ld -m elf_i386 -static -no-pie --fatal-warnings --no-warn-rwx-segments -T tests/icount/guest.lds \
		-o $(@:.bin=.elf) $(ICOUNT_DIR)/start.o $(ICOUNT_DIR)/guest.o
	$(Q)objcopy -O binary $(@:.bin=.elf) $@

CHECK_DEPS += $(ICOUNT_GUEST)
CHECK_HOST += tests/icount/test_icount,$(B)
# Linux boots slowly when instructions are counted.
CHECK_HOST_FULL += tests/icount/test_linux,$(B)
-include $(ICOUNT_DIR)/guest.d
