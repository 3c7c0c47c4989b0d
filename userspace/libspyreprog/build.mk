# SPDX-License-Identifier: MIT
#
# libspyreprog: job binaries, their text form, program generators.
#
#   SPYREPROG, SPYREPROG_INC    static library and include flags; link with -pthread -lm
#   SPYREPROG_ASAN              the same with the sanitizers, for unit tests

spyreprog_dir := userspace/libspyreprog
spyreprog_src := $(wildcard $(spyreprog_dir)/*.c $(spyreprog_dir)/gen/*.c)
SPYREPROG_INC := -I$(spyreprog_dir)/include
SPYREPROG := $(B)/$(spyreprog_dir)/libspyreprog.a
SPYREPROG_ASAN := $(B)/$(spyreprog_dir)-asan/libspyreprog.a

# The references run the defined order over columns at once; -O3 vectorises them, and contraction
# would fuse what the order keeps apart. $(1): folder below $(B), $(2): flags.
define spyreprog_variant
$(B)/$(1)/%.o: $(spyreprog_dir)/%.c
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CFLAGS) $$(WARN) -O3 -ffp-contract=off $(2) $$(INC) $$(SPYREPROG_INC) -MMD -MP -c -o $$@ $$<

$(B)/$(1)/sha256.o: qemu-device/model/sha256.c
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CFLAGS) $$(WARN) $(2) $$(INC) -MMD -MP -c -o $$@ $$<

$(B)/$(1)/libspyreprog.a: $(spyreprog_src:$(spyreprog_dir)/%.c=$(B)/$(1)/%.o) $(B)/$(1)/sha256.o
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@
	$$(Q)$$(AR) rcs $$@ $$^

-include $(spyreprog_src:$(spyreprog_dir)/%.c=$(B)/$(1)/%.d)
endef

$(eval $(call spyreprog_variant,$(spyreprog_dir)))
$(eval $(call spyreprog_variant,$(spyreprog_dir)-asan,$(SAN) -DSPYREPROG_PLAIN))

$(B)/$(spyreprog_dir)/spyreprog.pc: $(spyreprog_dir)/spyreprog.pc.in
	$(Q)mkdir -p $(@D)
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|1.0|' $< >$@

ALL += $(SPYREPROG) $(B)/$(spyreprog_dir)/spyreprog.pc
INSTALL_LIB += $(SPYREPROG)
INSTALL_PC += $(B)/$(spyreprog_dir)/spyreprog.pc
INSTALL_INC += $(wildcard $(spyreprog_dir)/include/*.h) $(addprefix include/spyre/,base.h hw.h isa.h num.h)

# --- Unit tests -----------------------------------------------------------------------------

spyreprog_tests := $(addprefix $(B)/tests/unit/,test_asm $(basename $(notdir $(wildcard tests/unit/test_prog_*.c))))

$(B)/tests/unit/obj-prog/%.o: tests/unit/%.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(WARN) $(SAN) $(INC) $(SPYREPROG_INC) $(MODEL_INC) -MMD -MP -c -o $@ $<

# The model as it is shipped: with sanitizers, which its own tests have, the sweeps over shapes take
# ten times as long.
$(spyreprog_tests): $(B)/tests/unit/%: $(B)/tests/unit/obj-prog/%.o $(SPYREPROG_ASAN) $(MODEL_LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $^ -lcmocka -pthread -lm

CHECK_UNIT += $(spyreprog_tests)
CHECK_HOST_FULL += $(B)/tests/unit/test_prog_gen_division,--all
.SECONDARY: $(spyreprog_tests:$(B)/tests/unit/%=$(B)/tests/unit/obj-prog/%.o)
-include $(wildcard $(B)/tests/unit/obj-prog/*.d)

# --- Benchmark ------------------------------------------------------------------------------

$(B)/tests/bench/bench_gen: tests/bench/bench_gen.c $(MODEL_LIB) $(SPYREPROG)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -O2 $(WARN) $(INC) $(MODEL_INC) $(SPYREPROG_INC) -Itests/unit -o $@ $^ -pthread -lm

ALL += $(B)/tests/bench/bench_gen
