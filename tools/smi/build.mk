# SPDX-License-Identifier: MIT

$(B)/tools/smi/spyre-smi.o: tools/smi/spyre-smi.c tools/smi/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -D_GNU_SOURCE $(INC) $(SPYRERT_INC) $$(pkg-config --cflags jansson) -MMD -MP -c -o $@ $<

$(B)/tools/spyre-smi: $(B)/tools/smi/spyre-smi.o $(SPYRERT)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $< $(SPYRERT_LINK) $$(pkg-config --libs jansson)

ALL += $(B)/tools/spyre-smi
INSTALL_BIN += $(B)/tools/spyre-smi
-include $(B)/tools/smi/spyre-smi.d
