# SPDX-License-Identifier: MIT
#
# Which lines of the driver run: "make cover" measures for half an hour and prints them.

COVER_SECONDS ?= 600

.PHONY: cover cover-driver
cover-driver: | $(KERNEL_READY)
	$(Q)$(MAKE) --no-print-directory kernel-for SPYRE_COVER=1 KDIR=$(KDIR) KOUT=$(B)/kernel-cover
cover: build cover-driver
	$(Q)$(MAKE) --no-print-directory $(addprefix $(KST_DIR)/,$(KST) $(KST_FUZZ)) $(CHECK_RT) $(CAMPAIGN_DIR)/load
	$(Q)tests/cover/measure --seconds $(COVER_SECONDS) $(abspath $(B))
