# SPDX-License-Identifier: MIT
#
# Faults at random times under load. The guest's half; the host's is the script campaign.

CAMPAIGN_DIR := $(B)/tests/campaign

$(CAMPAIGN_DIR)/load.o: tests/campaign/load.c tests/kselftest/spyre_test.h tests/jobs.h include/uapi/drm/spyre_accel.h
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(INC) $(SPYREPROG_INC) $$(pkg-config --cflags libdrm) -c -o $@ $<

$(CAMPAIGN_DIR)/load: $(CAMPAIGN_DIR)/load.o $(B)/tests/kselftest/spyre_test.o $(SPYREPROG)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -lm

CHECK_DEPS += $(CAMPAIGN_DIR)/load
