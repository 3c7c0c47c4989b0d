# SPDX-License-Identifier: MIT
#
# The reference interpreter and random programs, against the card's model: with ASan and UBSan.

ref_parts := test_ref ref_num ref_job ref_run ref_time ref_gen
ref_flags := -O2 -ffp-contract=off $(SAN)

$(B)/tests/unit/obj-ref/%.o: tests/unit/%.c tests/unit/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(WARN) $(INC) $(MODEL_INC) -Iuserspace/libspyreprog/include -Itests/unit $(ref_flags) -MMD -MP -c -o $@ $<

$(B)/tests/unit/test_ref: $(ref_parts:%=$(B)/tests/unit/obj-ref/%.o) $(MODEL_LIB_ASAN) $(B)/userspace/libspyreprog/libspyreprog.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(ref_flags) -o $@ $^ -lcmocka -lm

CHECK_UNIT += $(B)/tests/unit/test_ref
CHECK_HOST_FULL += SPYRE_REF_SEED=1000000,SPYRE_REF_INSNS=5000000,$(B)/tests/unit/test_ref
-include $(ref_parts:%=$(B)/tests/unit/obj-ref/%.d)
