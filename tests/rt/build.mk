# SPDX-License-Identifier: MIT
#
# The suites of libspyrert, thrice from one source each: they link the library as users do
# and run in the machine on backend drm (or anywhere with SPYRERT_BACKEND=model); ..._model carries the card, has
# ASan and UBSan, and is a unit test; ..._tsan is the same with TSan. test_reset is for the machine alone.

rt_suites := test_rt test_share test_event_share
rt_drm = $$(pkg-config --cflags libdrm)
rt_in_vm := $(addprefix $(B)/tests/rt/,$(rt_suites) test_reset)
rt_model := $(rt_suites:%=$(B)/tests/unit/%_model)
rt_tsan_tests := $(rt_suites:%=$(B)/tests/unit/%_tsan)

$(rt_in_vm:=.o): $(B)/tests/rt/%.o: tests/rt/%.c tests/rt/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -D_GNU_SOURCE $(INC) $(SPYRERT_INC) $(SPYREPROG_INC) $(rt_drm) -MMD -MP -c -o $@ $<

$(rt_in_vm): %: %.o $(SPYRERT) $(SPYREPROG)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $< $(SPYREPROG) $(SPYRERT_LINK) -lcmocka -lm

# gcc warns that TSan does not model fences: the store-buffering arguments they serve need none of its edges.
rt_tsan := -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan

$(B)/spyrert-tsan/%.o: $(spyrert_dir)/src/%.c tests/rt/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(rt_tsan) $(INC) $(MODEL_INC) $(spyrert_flags) -MMD -MP -c -o $@ $<

$(rt_suites:%=$(B)/tests/unit/obj/%_tsan.o): $(B)/tests/unit/obj/%_tsan.o: tests/rt/%.c tests/rt/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(rt_tsan) -D_GNU_SOURCE $(INC) $(SPYRERT_INC) $(SPYREPROG_INC) $(rt_drm) \
		-DFIRMWARE='"$(abspath $(FW_IMAGE))"' -MMD -MP -c -o $@ $<

rt_tsan_obj := $(spyrert_asan:$(B)/spyrert-asan/%=$(B)/spyrert-tsan/%)
$(rt_tsan_tests): $(B)/tests/unit/%: $(B)/tests/unit/obj/%.o $(rt_tsan_obj) $(SPYREPROG) $(MODEL_LIB_TSAN) $(FW_IMAGE)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(rt_tsan) -o $@ $< $(rt_tsan_obj) $(SPYREPROG) $(MODEL_LIB_TSAN) $(spyrert_libs) \
		-lcmocka -lm

$(rt_suites:%=$(B)/tests/unit/obj/%_model.o): $(B)/tests/unit/obj/%_model.o: tests/rt/%.c tests/rt/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN) -D_GNU_SOURCE $(INC) $(SPYRERT_INC) $(SPYREPROG_INC) $(rt_drm) \
		-DFIRMWARE='"$(abspath $(FW_IMAGE))"' -MMD -MP -c -o $@ $<

$(rt_model): $(B)/tests/unit/%: $(B)/tests/unit/obj/%.o $(SPYRERT_TEST) $(SPYREPROG) $(MODEL_LIB_ASAN) $(FW_IMAGE)
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

CHECK_UNIT += $(rt_model) $(rt_tsan_tests) $(B)/tests/rt/test_rt_cxx $(B)/tests/rt/test_smi
CHECK_UNIT += tests/rt/sparse tests/rt/test_symbols tests/rt/abi,$(B)
CHECK_DEPS += $(rt_in_vm)
CHECK_VM += $(rt_in_vm) tests/rt/test_smi_reset,$(B) tests/rt/test_smi_users,$(B)
# Memory of two cards.
CHECK_VM_FULL += $(foreach t,test_share test_event_share,vm:--cards=2,$(B)/tests/rt/$(t))
CHECK_VM_FULL += vm:--cards=2,vm:--switch,$(B)/tests/rt/test_share
-include $(rt_tsan_obj:.o=.d) $(rt_in_vm:=.d)
-include $(patsubst %,$(B)/tests/unit/obj/%_tsan.d,$(rt_suites)) $(patsubst %,$(B)/tests/unit/obj/%_model.d,$(rt_suites))
