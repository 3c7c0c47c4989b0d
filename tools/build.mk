# SPDX-License-Identifier: MIT
# The tools. spyre-smi and spyre-bench have fragments of their own.

TOOLS_DIR := $(B)/tools
tools_cflags := $(SPYREPROG_INC) -Iuserspace/libspyrert/include

$(TOOLS_DIR)/%.o: tools/%.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(WARN) $(INC) $(tools_cflags) -MMD -MP -c -o $@ $<

$(TOOLS_DIR)/spyre-as: $(TOOLS_DIR)/spyre-as.o $(SPYREPROG)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -lm

$(TOOLS_DIR)/spyre-gen: $(TOOLS_DIR)/spyre-gen.o $(TOOLS_DIR)/args.o $(SPYREPROG)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -lm

$(TOOLS_DIR)/spyre-dis: $(TOOLS_DIR)/spyre-dis.o $(SPYREPROG)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -ljansson -lm

$(TOOLS_DIR)/spyre-run.o $(TOOLS_DIR)/profile.o $(TOOLS_DIR)/trace.o: tools_cflags += $(MODEL_INC)

$(TOOLS_DIR)/spyre-run: $(addprefix $(TOOLS_DIR)/,spyre-run.o npy.o args.o profile.o trace.o) $(SPYREPROG) $(MODEL_LIB) $(SPYRERT)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $(filter %.o,$^) $(SPYREPROG) $(MODEL_LIB) $(SPYRERT_LINK) -ljansson -pthread -lm

$(TOOLS_DIR)/spyre-trace: $(TOOLS_DIR)/spyre-trace.o $(TOOLS_DIR)/args.o
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^

$(TOOLS_DIR)/spyre-inject: $(TOOLS_DIR)/spyre-inject.o $(TOOLS_DIR)/args.o
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -ljansson

tools_prog := $(addprefix $(TOOLS_DIR)/,spyre-as spyre-dis spyre-gen spyre-inject spyre-run spyre-trace)
ALL += $(tools_prog)
INSTALL_BIN += $(tools_prog)
# spyre-vm and spyre-bench work in the tree they were built in: they boot its QEMU, kernel and driver.
INSTALL_MAN += $(filter-out %/spyre-vm.1 %/spyre-bench.1,$(wildcard tools/man/*.[1-8]))
-include $(wildcard $(TOOLS_DIR)/*.d)
-include $(wildcard tools/*/build.mk)
