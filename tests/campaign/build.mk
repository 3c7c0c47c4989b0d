# SPDX-License-Identifier: MIT
#
# Faults at random times under load. The guest's half; the host's is the script campaign.

CAMPAIGN_DIR := $(B)/tests/campaign

$(CAMPAIGN_DIR)/load.o: tests/campaign/load.c tests/kselftest/spyre_test.h tests/kselftest/spyre_work.h include/uapi/drm/spyre_accel.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(INC) $(SPYREPROG_INC) $$(pkg-config --cflags libdrm) -c -o $@ $<

$(CAMPAIGN_DIR)/load: $(CAMPAIGN_DIR)/load.o $(B)/tests/kselftest/spyre_work.o $(B)/tests/kselftest/spyre_test.o $(SPYREPROG)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -lm

CHECK_DEPS += $(CAMPAIGN_DIR)/load
CHECK_HOST += tests/campaign/campaign,--faults=25,$(B)
# 500 more.
CHECK_HOST_FULL += limit:3600,tests/campaign/campaign,--faults=500,--seed=2,$(B)
# A machine that sleeps.
CHECK_HOST_FULL += tests/campaign/test_sleep,$(B)
CHECK_DEPS += $(B)/tests/kselftest/spyre_sleep
# Errors of the bus, and a slot that cannot be reset.
CHECK_HOST_FULL += tests/campaign/test_aer,$(B)
# A card that goes while another one has its memory.
CHECK_HOST_FULL += tests/campaign/test_pulled,$(B)
# An error in memory that is there before the boot.
CHECK_HOST_FULL += tests/campaign/test_boot,$(B)
