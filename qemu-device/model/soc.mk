# SPDX-License-Identifier: MIT
#
# Unit tests and benchmark of the SoC: with ASan and UBSan; those with threads again with TSan. The programs
# that they run come from libspyreprog.

soc_prog := $(B)/userspace/libspyreprog/libspyreprog.a
soc_inc := $(MODEL_INC) -Iuserspace/libspyreprog/include -Itests/unit

# $(1) test, $(2) suffix, $(3) flags, $(4) archive, $(5) list, if another than CHECK_UNIT, $(6) its word's arguments
define soc_test
$(B)/tests/unit/obj$(2)/$(1).o: tests/unit/$(1).c $(model_dir)/soc.mk
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CFLAGS) $(WARN) $$(INC) $(soc_inc) $(3) -MMD -MP -c -o $$@ $$<

$(B)/tests/unit/$(1)$(2): $(B)/tests/unit/obj$(2)/$(1).o $(4) $(soc_prog)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(CFLAGS) $(3) -o $$@ $$^ -lcmocka -lm

$(or $(5),CHECK_UNIT) += $(B)/tests/unit/$(1)$(2)$(6)
-include $(B)/tests/unit/obj$(2)/$(1).d
endef

soc_have = $(foreach t,$(1),$(if $(wildcard tests/unit/$(t).c),$(t)))
$(foreach t,$(call soc_have,test_num test_num_exact test_num_same test_job test_soc test_soc_time test_soc_profile test_soc_count test_soc_lend test_races),$(eval $(call soc_test,$(t),,$(SAN),$(MODEL_LIB_ASAN))))
$(foreach t,$(call soc_have,test_soc test_soc_count),$(eval $(call soc_test,$(t),_tsan,$(MODEL_TSAN),$(MODEL_LIB_TSAN))))

# Every fp32 there is, at full speed.
soc_comma := ,
$(foreach t,$(call soc_have,test_num_exact),$(eval $(call soc_test,$(t),_all,-O3,$(MODEL_LIB),CHECK_HOST_FULL,$(soc_comma)--all)))

# The published cases, with what makes and times them.
timing_test := $(B)/tests/unit/test_timing_cases
timing_test_obj := $(addprefix $(B)/tests/unit/obj/,test_timing_cases.o timing_cases.o timing_run.o)

$(B)/tests/unit/obj/timing_%.o: tools/bench/timing/%.c $(model_dir)/soc.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(WARN) $(INC) $(soc_inc) $(SAN) -MMD -MP -c -o $@ $<

$(B)/tests/unit/obj/test_timing_cases.o: tests/unit/test_timing_cases.c $(model_dir)/soc.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(WARN) $(INC) $(soc_inc) -Itools/bench/timing $(SAN) -MMD -MP -c -o $@ $<

$(timing_test): $(timing_test_obj) $(MODEL_LIB_ASAN) $(soc_prog)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $^ -lcmocka -lm

CHECK_UNIT += $(timing_test)
-include $(timing_test_obj:.o=.d)

$(B)/tests/bench/bench_soc: tests/bench/bench_soc.c $(MODEL_LIB) $(soc_prog)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -O2 $(WARN) $(INC) $(soc_inc) -o $@ $^ -lm -ldl

ALL += $(if $(wildcard tests/bench/bench_soc.c),$(B)/tests/bench/bench_soc)
