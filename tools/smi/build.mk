# SPDX-License-Identifier: MIT

SMI_OBJ := $(addprefix $(B)/tools/smi/,spyre-smi.o dump.o)

$(SMI_OBJ): $(B)/%.o: %.c tools/smi/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -D_GNU_SOURCE $(INC) $(SPYRERT_INC) $$(pkg-config --cflags jansson) -MMD -MP -c -o $@ $<

$(B)/tools/spyre-smi: $(SMI_OBJ) $(SPYRERT)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $(SMI_OBJ) $(SPYRERT_LINK) $$(pkg-config --libs jansson)

ALL += $(B)/tools/spyre-smi
INSTALL_BIN += $(B)/tools/spyre-smi
-include $(SMI_OBJ:.o=.d)
