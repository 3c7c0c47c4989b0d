# SPDX-License-Identifier: MIT
# spyre-bench: the host half is tools/spyre-bench; the guest half and what the host does without the card are C.

bench_src := $(wildcard tools/bench/*.c)
bench_guest := $(filter-out tools/bench/host.c,$(bench_src))
bench_obj := $(bench_src:%.c=$(B)/%.o)

$(bench_obj): $(B)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(INC) -Iuserspace/libspyrert/include -Iuserspace/libspyreprog/include \
		$$(pkg-config --cflags openblas) -MMD -MP -c -o $@ $<

$(B)/tools/spyre-bench-guest: $(bench_guest:%.c=$(B)/%.o) $(SPYREPROG) $(SPYRERT)
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -o $@ $(bench_guest:%.c=$(B)/%.o) $(SPYREPROG) $(SPYRERT_LINK) \
		$$(pkg-config --libs openblas) -lm

$(B)/tools/spyre-bench-host: $(B)/tools/bench/host.o
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -o $@ $< $$(pkg-config --libs openblas)

ALL += $(B)/tools/spyre-bench-guest $(B)/tools/spyre-bench-host
BENCH := tools/spyre-bench --build $(B)
-include $(bench_obj:.o=.d)

# The published cases against the model: no card, no virtual machine.
timing_src := $(wildcard tools/bench/timing/*.c)
timing_obj := $(timing_src:%.c=$(B)/%.o)

$(timing_obj): $(B)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(INC) $(MODEL_INC) $(SPYREPROG_INC) -MMD -MP -c -o $@ $<

$(B)/tools/spyre-bench-timing: $(timing_obj) $(SPYREPROG) $(MODEL_LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -lm

ALL += $(B)/tools/spyre-bench-timing
-include $(timing_obj:.o=.d)
