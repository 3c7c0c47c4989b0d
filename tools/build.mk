# SPDX-License-Identifier: MIT
# The tools. spyre-smi and spyre-bench have fragments of their own.

TOOLS_DIR := $(B)/tools
tools_cflags := $(SPYREPROG_INC) -Iuserspace/libspyrert/include

$(TOOLS_DIR)/%.o: tools/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(WARN) $(INC) $(tools_cflags) -MMD -MP -c -o $@ $<

$(TOOLS_DIR)/spyre-as: $(TOOLS_DIR)/spyre-as.o $(SPYREPROG)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -lm

$(TOOLS_DIR)/spyre-dis: $(TOOLS_DIR)/spyre-dis.o $(SPYREPROG)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -ljansson -lm

ALL += $(TOOLS_DIR)/spyre-as $(TOOLS_DIR)/spyre-dis
INSTALL_BIN += $(TOOLS_DIR)/spyre-as $(TOOLS_DIR)/spyre-dis
INSTALL_MAN += $(wildcard tools/man/*.[1-8])
-include $(wildcard $(TOOLS_DIR)/*.d)
-include $(wildcard tools/*/build.mk)
