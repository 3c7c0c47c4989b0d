# SPDX-License-Identifier: MIT
#
# Under libFuzzer, which clang has: the job loader, and the firmware alone, and the card with its firmware; without
# clang that test skips itself. "make fuzz FUZZ_SECONDS=3600": so long for each. Without clang too: a fixed number of
# inputs for the latter two, replay_fw and replay_card.

FUZZ_SECONDS ?= 60
fuzz_dir := $(B)/tests/fuzz
fuzz_clang := $(shell command -v clang)
fuzz_flags := -std=gnu11 -pthread -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all $(INC) $(MODEL_INC) \
	-Iuserspace/libspyreprog/include -Itests/unit
fuzz_src := $(model_soc_src) sha256.c
fuzz_card_src := $(filter-out $(fuzz_src),$(model_src))

$(fuzz_dir)/obj/%.o: qemu-device/model/%.c tests/fuzz/build.mk
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)clang $(call model_flags,$*.c) -O1 $(fuzz_flags) -MMD -MP -c -o $@ $<

$(fuzz_dir)/obj/fuzz_job.o: tests/fuzz/fuzz_job.c tests/fuzz/build.mk
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)clang -O1 $(fuzz_flags) -Wall -Wextra -Werror -MMD -MP -c -o $@ $<

$(fuzz_dir)/fuzz_job: $(fuzz_dir)/obj/fuzz_job.o $(fuzz_src:%.c=$(fuzz_dir)/obj/%.o) $(B)/userspace/libspyreprog/libspyreprog.a
	$(call say,LD,$@)
	$(Q)clang -fsanitize=fuzzer,address,undefined -pthread -o $@ $^ -lm

$(addprefix $(fuzz_dir)/obj/,fuzz_card.o cardtest.o): $(fuzz_dir)/obj/%.o: tests/fuzz/build.mk
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)clang -O1 $(fuzz_flags) -D_GNU_SOURCE -DCT_FIRMWARE='"$(FW_IMAGE)"' -Wall -Wextra -Werror -MMD -MP -c -o $@ $(filter %.c,$^)
$(fuzz_dir)/obj/fuzz_card.o: tests/fuzz/fuzz_card.c
$(fuzz_dir)/obj/cardtest.o: tests/unit/cardtest.c

$(fuzz_dir)/fuzz_card: $(addprefix $(fuzz_dir)/obj/,fuzz_card.o cardtest.o $(sort $(fuzz_src:%.c=%.o) $(fuzz_card_src:%.c=%.o))) | $(FW_IMAGE)
	$(call say,LD,$@)
	$(Q)clang -fsanitize=fuzzer,address,undefined -pthread -o $@ $^ -lm

$(fuzz_dir)/replay_card: $(addprefix $(fuzz_dir)/gcc/,fuzz_card.o replay.o) $(FW_DIR)/card/cardtest.o $(MODEL_LIB_ASAN) | $(FW_IMAGE)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $^ -lm

$(fuzz_dir)/gcc/%.o: tests/fuzz/%.c tests/fuzz/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(FW_CARD_FLAGS) $(SAN) -MMD -MP -c -o $@ $<

# fw_mock.c asserts by cmocka, which ends the process.
fuzz_fw_flags := -DFW_HOST -DFW_VERSION='"$(FW_VERSION)"' -Ifirmware
fuzz_fw_obj := $(addprefix $(fuzz_dir)/obj/fw/,$(FW_HOST_SRC:firmware/%.c=%.o) fw_mock.o fuzz_fw.o)

$(fuzz_dir)/obj/fw/%.o: firmware/%.c tests/fuzz/build.mk
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)clang -O1 $(fuzz_flags) $(fuzz_fw_flags) -MMD -MP -c -o $@ $<

$(addprefix $(fuzz_dir)/obj/fw/,fw_mock.o fuzz_fw.o): tests/fuzz/build.mk
	$(call say,CLANG,$@)
	$(Q)mkdir -p $(@D)
	$(Q)clang -O1 $(fuzz_flags) $(fuzz_fw_flags) -MMD -MP -c -o $@ $(filter %.c,$^)
$(fuzz_dir)/obj/fw/fw_mock.o: tests/unit/fw_mock.c
$(fuzz_dir)/obj/fw/fuzz_fw.o: tests/fuzz/fuzz_fw.c

$(fuzz_dir)/fuzz_fw: $(fuzz_fw_obj)
	$(call say,LD,$@)
	$(Q)clang -fsanitize=fuzzer,address,undefined -pthread -o $@ $^ -lcmocka

$(fuzz_dir)/gcc/fuzz_fw.o: tests/fuzz/fuzz_fw.c tests/fuzz/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(FW_HOST_FLAGS) -MMD -MP -c -o $@ $<

$(fuzz_dir)/replay_fw: $(addprefix $(fuzz_dir)/gcc/,fuzz_fw.o replay.o) $(FW_HOST_OBJ) $(FW_DIR)/host/fw_mock.o
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $^ -lcmocka

CHECK_UNIT += $(fuzz_dir)/replay_card $(fuzz_dir)/replay_fw

$(fuzz_dir)/corpus: tests/fuzz/corpus.c $(addprefix tests/unit/,ref_gen.c ref_job.c ref_num.c) $(B)/userspace/libspyreprog/libspyreprog.a tests/fuzz/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(INC) -Iuserspace/libspyreprog/include -Itests/unit -o $@ $(filter %.c %.a,$^) -lm

fuzz_ready := $(if $(fuzz_clang),$(addprefix $(fuzz_dir)/,fuzz_job fuzz_fw fuzz_card corpus))
CHECK_DEPS += $(fuzz_ready)
CHECK_HOST += tests/fuzz/fuzz,$(B),10

.PHONY: fuzz
fuzz: $(fuzz_ready)
	$(Q)tests/fuzz/fuzz $(B) $(FUZZ_SECONDS)

-include $(patsubst %.c,$(fuzz_dir)/obj/%.d,$(fuzz_src) $(fuzz_card_src) fuzz_job.c fuzz_card.c cardtest.c) \
	$(fuzz_fw_obj:.o=.d) $(addprefix $(fuzz_dir)/gcc/,fuzz_card.d fuzz_fw.d replay.d)
