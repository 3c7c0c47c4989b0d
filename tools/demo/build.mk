# SPDX-License-Identifier: MIT
# The demo: training on the host, inference and a product on the card.

demo_dir := tools/demo
demo_obj := $(addprefix $(TOOLS_DIR)/demo/,demo.o digits.o check.o picture.o) $(TOOLS_DIR)/args.o
DEMO_DATA := $(SPYRE_CACHE)/digits/digits.csv.gz
DEMO_NET := $(B)/demo/digits.net

$(TOOLS_DIR)/demo/%.o: $(demo_dir)/%.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(WARN) -O3 $(INC) $(tools_cflags) -MMD -MP -c -o $@ $<

$(TOOLS_DIR)/spyre-demo: $(demo_obj) $(SPYREPROG) $(SPYRERT)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $(demo_obj) $(SPYREPROG) $(SPYRERT_LINK) -lz -lpng -ldl -lm

$(TOOLS_DIR)/spyre-train: $(addprefix $(TOOLS_DIR)/demo/,train.o digits.o) $(TOOLS_DIR)/args.o
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -lz -lm

$(DEMO_DATA): | $(B)/deps.mk
	$(Q)$(demo_dir)/data.sh $@

$(DEMO_NET): $(TOOLS_DIR)/spyre-train | $(DEMO_DATA)
	$(call say,TRAIN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(TOOLS_DIR)/spyre-train -q $(DEMO_DATA) $@

ALL += $(TOOLS_DIR)/spyre-demo $(TOOLS_DIR)/spyre-train $(DEMO_NET)
INSTALL_BIN += $(TOOLS_DIR)/spyre-demo $(TOOLS_DIR)/spyre-train
DEMO = $(demo_dir)/demo.sh $(B) $(DEMO_DATA) $(DEMO_NET) $(DEMOFLAGS)
-include $(wildcard $(TOOLS_DIR)/demo/*.d)
