# SPDX-License-Identifier: MIT
#
# The firmware image and its ELF, and the firmware's sources compiled for the host.

FW_VERSION := 1.0.0
FW_CROSS ?= riscv64-unknown-elf-
FW_DIR := $(B)/firmware
FW_IMAGE := $(FW_DIR)/spyre/spyre-dd2-1.fw
FW_ELF := $(FW_DIR)/spyre-dd2-1.elf
FW_ARCH := -march=rv32imc_zicsr_zifencei -mabi=ilp32
FW_FLAGS := -std=gnu11 -O2 -g $(FW_ARCH) -mcmodel=medlow -ffreestanding -fno-builtin \
	-ffunction-sections -fdata-sections -fno-common -fno-stack-protector -fcallgraph-info=su \
	-Wall -Wextra -Wmissing-prototypes -Wvla -Wconversion -Wno-sign-conversion -Wundef \
	-Wstack-usage=512 -Werror -DFW_VERSION='"$(FW_VERSION)"' -Iinclude
# Arithmetic of the compiler's own library only, and of the variant without atomics: asking with the
# zicsr extension named finds the 64-bit one.
FW_LIBGCC = $(shell $(FW_CROSS)gcc -march=rv32im -mabi=ilp32 -print-libgcc-file-name)

FW_SRC := $(filter-out firmware/layout.c,$(sort $(wildcard firmware/*.c)))
FW_OBJ := $(FW_SRC:firmware/%.c=$(FW_DIR)/rv32/%.o) $(FW_DIR)/rv32/start.o

$(FW_DIR)/rv32/%.o: firmware/%.c firmware/build.mk
	$(call say,FWCC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(FW_CROSS)gcc $(FW_FLAGS) -MMD -MP -c -o $@ $<

$(FW_DIR)/rv32/%.o: firmware/%.S firmware/build.mk
	$(call say,FWAS,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(FW_CROSS)gcc $(FW_ARCH) -g -Iinclude -MMD -MP -c -o $@ $<

# The headers' layout, as the compiler knows it, for the linker script and the image tool.
FW_LAYOUT := $(FW_DIR)/layout.h
$(FW_LAYOUT): firmware/layout.c firmware/build.mk
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(FW_CROSS)gcc $(FW_FLAGS) -MMD -MP -MF $@.d -MT $@ -S -o $(@:.h=.s) $<
	$(Q)sed -n 's/^->\([A-Z_]*\) \(.*\)/#define \1 \2/p' $(@:.h=.s) > $@
-include $(FW_LAYOUT).d

$(FW_DIR)/firmware.lds: firmware/firmware.lds $(FW_LAYOUT)
	$(call say,GEN,$@)
	$(Q)$(FW_CROSS)gcc -E -P -undef -x c -include $(FW_LAYOUT) -o $@ $<

$(FW_ELF): $(FW_OBJ) $(FW_DIR)/firmware.lds
	$(call say,FWLD,$@)
	$(Q)$(FW_CROSS)gcc $(FW_ARCH) -nostdlib -static -Wl,--gc-sections -Wl,--fatal-warnings -Wl,--no-warn-rwx-segments \
		-Wl,-T,$(FW_DIR)/firmware.lds -Wl,-Map,$(FW_ELF:.elf=.map) -o $@ $(FW_OBJ) $(FW_LIBGCC)

# What the stacks can need at most. An image is made only when they suffice.
FW_STACK := $(FW_ELF:.elf=.stack)
$(FW_STACK): $(FW_ELF) firmware/stack.py firmware/command.c
	$(Q)python3 firmware/stack.py --nm $(FW_CROSS)nm --objdump $(FW_CROSS)objdump --source firmware/command.c \
		--out $@ $(FW_ELF) $(FW_SRC:firmware/%.c=$(FW_DIR)/rv32/%.ci)

$(FW_IMAGE): $(FW_ELF) $(FW_LAYOUT) firmware/mkfw.py $(FW_STACK)
	$(call say,FW,$@)
	$(Q)mkdir -p $(@D)
	$(Q)python3 firmware/mkfw.py --layout $(FW_LAYOUT) --version $(FW_VERSION) $(FW_ELF) $@

ALL += $(FW_IMAGE)
INSTALL_FW += $(FW_IMAGE)
.PHONY: firmware
firmware: $(FW_IMAGE)

-include $(FW_OBJ:.o=.d)

# --- Unit tests: the same sources against a mock of the bus -----------------------------------

FW_HOST_FLAGS = $(CFLAGS) $(SAN) $(INC) -DFW_HOST -DFW_VERSION='"$(FW_VERSION)"' -Ifirmware -Itests/unit
FW_HOST_SRC := $(filter-out firmware/main.c firmware/trap.c firmware/lib.c,$(FW_SRC)) firmware/main.c
FW_HOST_OBJ := $(FW_HOST_SRC:firmware/%.c=$(FW_DIR)/host/%.o)
FW_CORE_OBJ := $(FW_DIR)/host/test_fw_core.o $(FW_DIR)/host/fw_mock.o

$(FW_DIR)/host/%.o: firmware/%.c firmware/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(FW_HOST_FLAGS) -MMD -MP -c -o $@ $<

$(FW_CORE_OBJ): $(FW_DIR)/host/%.o: tests/unit/%.c firmware/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(FW_HOST_FLAGS) -MMD -MP -c -o $@ $<

$(B)/tests/unit/test_fw_core: $(FW_HOST_OBJ) $(FW_CORE_OBJ)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $^ -lcmocka

CHECK_UNIT += $(B)/tests/unit/test_fw_core
-include $(FW_HOST_OBJ:.o=.d) $(FW_CORE_OBJ:.o=.d)

# --- Unit tests: the image on the card model, in process ----------------------------------------

FW_CARD_FLAGS = $(CFLAGS) $(INC) $(MODEL_INC) -D_GNU_SOURCE -DCT_FIRMWARE='"$(FW_IMAGE)"' -DFW_STACK='"$(FW_STACK)"' -Itests/unit \
	-Iuserspace/libspyreprog/include

# Its own build.mk, which makes and names it, comes later.
FW_PROG_ASAN := $(B)/userspace/libspyreprog-asan/libspyreprog.a

# $(1) tests, $(2) suffix, $(3) flags, $(4) archives
define fw_card_test
$(FW_DIR)/card$(2)/%.o: tests/unit/%.c firmware/build.mk
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(FW_CARD_FLAGS) $(3) -MMD -MP -c -o $$@ $$<

$(foreach t,$(1),$(B)/tests/unit/$(t)$(2)): $(B)/tests/unit/%$(2): $(FW_DIR)/card$(2)/%.o $(FW_DIR)/card$(2)/cardtest.o $(4) | $(FW_IMAGE)
	$$(call say,LD,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CFLAGS) $(3) -o $$@ $$^ -lcmocka -lm

CHECK_UNIT += $(foreach t,$(1),$(B)/tests/unit/$(t)$(2))
-include $(wildcard $(FW_DIR)/card$(2)/*.d)
endef

$(eval $(call fw_card_test,test_fw_card test_fw_stress test_fw_bounds test_fw_compute test_fw_slices,,$(SAN),$(FW_PROG_ASAN) $(MODEL_LIB_ASAN)))
# GCC does not model the fences of cardtest.c here; what they order are atomics.
$(eval $(call fw_card_test,test_fw_stress,_tsan,$(MODEL_TSAN) -Wno-tsan,$(MODEL_LIB_TSAN)))

# --- Speed: $(B)/tests/bench/bench_fw ------------------------------------------------------------

FW_BENCH := $(B)/tests/bench/bench_fw
$(FW_BENCH): tests/bench/bench_fw.c tests/unit/cardtest.c tests/unit/cardtest.h $(MODEL_LIB) | $(FW_IMAGE)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(FW_CARD_FLAGS) -o $@ tests/bench/bench_fw.c tests/unit/cardtest.c $(MODEL_LIB) -lm

ALL += $(FW_BENCH)
