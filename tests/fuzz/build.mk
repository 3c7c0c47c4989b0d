# SPDX-License-Identifier: MIT
#
# The job loader under libFuzzer, which clang has; without clang the test skips itself. "make fuzz FUZZ_SECONDS=3600".

FUZZ_SECONDS ?= 60
fuzz_dir := $(B)/tests/fuzz
fuzz_clang := $(shell command -v clang)
fuzz_flags := -std=gnu11 -pthread -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all $(INC) $(MODEL_INC) \
	-Iuserspace/libspyreprog/include -Itests/unit
fuzz_src := $(model_soc_src) sha256.c

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

$(fuzz_dir)/corpus: tests/fuzz/corpus.c $(addprefix tests/unit/,ref_gen.c ref_job.c ref_num.c) $(B)/userspace/libspyreprog/libspyreprog.a tests/fuzz/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(INC) -Iuserspace/libspyreprog/include -Itests/unit -o $@ $(filter %.c %.a,$^) -lm

fuzz_ready := $(if $(fuzz_clang),$(fuzz_dir)/fuzz_job $(fuzz_dir)/corpus)
CHECK_DEPS += $(fuzz_ready)
CHECK_HOST += tests/fuzz/fuzz,$(B),10

.PHONY: fuzz
fuzz: $(fuzz_ready)
	$(Q)tests/fuzz/fuzz $(B) $(FUZZ_SECONDS)

-include $(fuzz_src:%.c=$(fuzz_dir)/obj/%.d) $(fuzz_dir)/obj/fuzz_job.d
