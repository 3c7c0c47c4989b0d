# SPDX-License-Identifier: MIT
#
# The card model as a static library, three times: as users link it, with ASan and UBSan, and with TSan for
# its unit tests. Sources are listed in sources.txt (the card; also read by meson.build) and in
# soc-sources.txt (the cores, each with flags of its own). The in-process host comes on top.
#
#   MODEL_LIB, MODEL_LIB_ASAN, MODEL_LIB_TSAN   the archives; link with -pthread -lm
#   MODEL_INC                                   for those who include spyre_model.h, inproc.h or soc.h

model_dir := qemu-device/model
MODEL_INC := -I$(model_dir)
MODEL_LIB := $(B)/model/libspyremodel.a
MODEL_LIB_ASAN := $(B)/model-asan/libspyremodel.a
MODEL_LIB_TSAN := $(B)/model-tsan/libspyremodel.a

model_card_src := $(shell sed -e '/^\#/d' $(model_dir)/sources.txt) inproc.c
# One word per line: file, then its flags, with @ for blanks. Vector variants are for x86-64 alone.
model_soc := $(shell sed -e '/^\#/d' -e '/^$$/d' -e 's/ /@/g' $(model_dir)/soc-sources.txt 2>/dev/null)
ifeq (,$(findstring x86_64,$(shell $(CC) -dumpmachine)))
model_soc := $(foreach l,$(model_soc),$(if $(findstring @-m,$(l)),,$(l)))
endif
model_soc_src := $(foreach l,$(model_soc),$(firstword $(subst @, ,$(l))))
model_src := $(model_card_src) $(model_soc_src)
model_flags = $(foreach l,$(model_soc),$(if $(filter $(1),$(firstword $(subst @, ,$(l)))),$(wordlist 2,99,$(subst @, ,$(l)))))

MODEL_TSAN := -fsanitize=thread -fno-omit-frame-pointer

# $(1) folder below $(B), $(2) its flags
define model_variant
$(B)/$(1)/%.o: $(model_dir)/%.c $(model_dir)/build.mk $(model_dir)/sources.txt $(wildcard $(model_dir)/soc-sources.txt)
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CFLAGS) $(WARN) $$(INC) -O2 $$(call model_flags,$$*.c) $(2) -MMD -MP -c -o $$@ $$<

$(B)/$(1)/libspyremodel.a: $(model_src:%.c=$(B)/$(1)/%.o)
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@
	$$(Q)$$(AR) rcs $$@ $$^

-include $(model_src:%.c=$(B)/$(1)/%.d)
endef

$(eval $(call model_variant,model,))
$(eval $(call model_variant,model-asan,$(SAN)))
$(eval $(call model_variant,model-tsan,$(MODEL_TSAN)))

ALL += $(MODEL_LIB)

# --- Unit tests: test_<topic> with ASan and UBSan, test_<topic>_tsan the same with TSan ---------

model_tests := $(wildcard $(addprefix tests/unit/test_,$(addsuffix .c,card mcu dma xlate gdb)))
model_test_obj :=

# $(1) test source, $(2) suffix, $(3) flags, $(4) archive
define model_test
$(B)/tests/unit/obj$(2)/$(notdir $(1:.c=.o)): $(1) $(model_dir)/build.mk
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CFLAGS) $(WARN) $$(INC) $(MODEL_INC) $(3) -MMD -MP -c -o $$@ $$<

$(B)/tests/unit/$(notdir $(1:.c=))$(2): $(B)/tests/unit/obj$(2)/$(notdir $(1:.c=.o)) $(4)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(CFLAGS) $(3) -o $$@ $$^ -lcmocka -lm

CHECK_UNIT += $(B)/tests/unit/$(notdir $(1:.c=))$(2)
-include $(B)/tests/unit/obj$(2)/$(notdir $(1:.c=.d))
endef

$(foreach t,$(model_tests),$(eval $(call model_test,$(t),,$(SAN),$(MODEL_LIB_ASAN))))
$(foreach t,$(model_tests),$(eval $(call model_test,$(t),_tsan,$(MODEL_TSAN),$(MODEL_LIB_TSAN))))

# --- Speed of the management core ------------------------------------------------------------

$(B)/tests/bench/bench_mcu: tests/bench/bench_mcu.c tests/unit/rv32.h $(MODEL_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(WARN) $(INC) $(MODEL_INC) -o $@ $< $(MODEL_LIB) -lm

ALL += $(B)/tests/bench/bench_mcu

-include $(model_dir)/soc.mk
