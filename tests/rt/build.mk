# SPDX-License-Identifier: MIT
#
# The suite of libspyrert, twice from one source: test_rt links the library as users do and runs in the
# machine on backend drm (or anywhere with SPYRERT_BACKEND=model); test_rt_model carries the card, has
# ASan and UBSan, and is a unit test; test_rt_tsan is the same with TSan.

rt_suite := tests/rt/test_rt.c

$(B)/tests/rt/test_rt.o $(B)/tests/rt/test_reset.o: $(B)/tests/rt/%.o: tests/rt/%.c tests/rt/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -D_GNU_SOURCE $(INC) $(SPYRERT_INC) $(SPYREPROG_INC) -MMD -MP -c -o $@ $<

$(B)/tests/rt/test_rt $(B)/tests/rt/test_reset: %: %.o $(SPYRERT) $(SPYREPROG)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $< $(SPYREPROG) $(SPYRERT_LINK) -lcmocka -lm

# gcc warns that TSan does not model fences: the store-buffering arguments they serve need none of its edges.
rt_tsan := -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan

$(B)/spyrert-tsan/%.o: $(spyrert_dir)/src/%.c tests/rt/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(rt_tsan) $(INC) $(MODEL_INC) $(spyrert_flags) -MMD -MP -c -o $@ $<

$(B)/tests/unit/obj/test_rt_tsan.o: $(rt_suite) tests/rt/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(rt_tsan) -D_GNU_SOURCE $(INC) $(SPYRERT_INC) $(SPYREPROG_INC) \
		-DFIRMWARE='"$(abspath $(FW_IMAGE))"' -MMD -MP -c -o $@ $<

rt_tsan_obj := $(spyrert_asan:$(B)/spyrert-asan/%=$(B)/spyrert-tsan/%)
$(B)/tests/unit/test_rt_tsan: $(B)/tests/unit/obj/test_rt_tsan.o $(rt_tsan_obj) $(SPYREPROG) $(MODEL_LIB_TSAN) $(FW_IMAGE)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(rt_tsan) -o $@ $< $(rt_tsan_obj) $(SPYREPROG) $(MODEL_LIB_TSAN) $(spyrert_libs) \
		-lcmocka -lm

$(B)/tests/unit/obj/test_rt_model.o: $(rt_suite) tests/rt/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN) -D_GNU_SOURCE $(INC) $(SPYRERT_INC) $(SPYREPROG_INC) \
		-DFIRMWARE='"$(abspath $(FW_IMAGE))"' -MMD -MP -c -o $@ $<

$(B)/tests/unit/test_rt_model: $(B)/tests/unit/obj/test_rt_model.o $(SPYRERT_TEST) $(SPYREPROG) $(MODEL_LIB_ASAN) $(FW_IMAGE)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $< -Wl,--whole-archive $(SPYRERT_TEST) -Wl,--no-whole-archive \
		$(SPYREPROG) $(SPYRERT_TEST_LIBS) -lcmocka

# spyre-smi on no card, on cards of the library, and on bad usage.
$(B)/tests/rt/test_smi: tests/rt/test_smi.py $(B)/tools/spyre-smi $(SPYRERT_MODEL) $(FW_IMAGE)
	$(Q)mkdir -p $(@D)
	$(Q)sed -e 's|@SMI@|$(abspath $(B))/tools/spyre-smi|' -e 's|@FIRMWARE@|$(abspath $(FW_IMAGE))|' $< >$@
	$(Q)chmod +x $@

# The headers from C++.
$(B)/tests/rt/cxx.o: tests/rt/cxx.cc $(spyrert_dir)/include/spyrert.h $(wildcard $(spyreprog_dir)/include/*.h include/spyre/*.h)
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) -std=c++11 -Wall -Wextra -Werror -pedantic $(INC) $(SPYRERT_INC) $(SPYREPROG_INC) -c -o $@ $<

$(B)/tests/rt/test_rt_cxx: $(B)/tests/rt/cxx.o $(SPYRERT) $(SPYREPROG)
	$(call say,LD,$@)
	$(Q)$(CXX) -pthread -o $@ $< $(SPYREPROG) $(SPYRERT_LINK) -lm

CHECK_UNIT += $(B)/tests/unit/test_rt_model $(B)/tests/unit/test_rt_tsan $(B)/tests/rt/test_rt_cxx $(B)/tests/rt/test_smi
CHECK_UNIT += tests/rt/sparse tests/rt/abi,$(B)
CHECK_RT := $(B)/tests/rt/test_rt $(B)/tests/rt/test_reset
CHECK_DEPS += $(CHECK_RT)
CHECK_VM += $(CHECK_RT) tests/rt/test_smi_reset,$(B) tests/rt/test_smi_users,$(B)
-include $(rt_tsan_obj:.o=.d) $(B)/tests/unit/obj/test_rt_tsan.d
-include $(B)/tests/rt/test_rt.d $(B)/tests/rt/test_reset.d $(B)/tests/unit/obj/test_rt_model.d
