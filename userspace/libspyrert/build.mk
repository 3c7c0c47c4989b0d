# SPDX-License-Identifier: MIT
#
# libspyrert.so.1, and libspyrert-model.so.1, the backend that carries the card in the process; it is
# opened at run time by who asks for it.
#
#   SPYRERT        what programs depend on
#   SPYRERT_INC    its header
#   SPYRERT_LINK   how programs in $(B)/<folder>/ and in an installed bin/ link it
#   SPYRERT_TEST   all of it as an archive with ASan and UBSan, SPYRERT_TEST_LIBS what it needs

spyrert_dir := userspace/libspyrert
spyrert_src := $(filter-out $(spyrert_dir)/src/backend_model.c,$(wildcard $(spyrert_dir)/src/*.c))
spyrert_model_src := $(spyrert_dir)/src/backend_model.c
SPYRERT := $(B)/lib/libspyrert.so
SPYRERT_MODEL := $(B)/lib/libspyrert-model.so.1
SPYRERT_INC := -I$(spyrert_dir)/include
SPYRERT_LINK := -L$(B)/lib -lspyrert '-Wl,-rpath,$$ORIGIN/../lib:$$ORIGIN/../../lib'
SPYRERT_TEST := $(B)/spyrert-asan/libspyrert.a
spyrert_libs = $$(pkg-config --libs libdrm jansson) -ldl -pthread
spyrert_flags = -D_GNU_SOURCE -fvisibility=hidden $(SPYRERT_INC) $$(pkg-config --cflags libdrm jansson)
SPYRERT_TEST_LIBS = $(MODEL_LIB_ASAN) $(spyrert_libs) -lm

$(eval $(call model_variant,model-pic,-fPIC -fvisibility=hidden))

$(B)/spyrert/%.o: $(spyrert_dir)/src/%.c $(spyrert_dir)/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -fPIC $(INC) $(MODEL_INC) $(spyrert_flags) -MMD -MP -c -o $@ $<

$(B)/spyrert-asan/%.o: $(spyrert_dir)/src/%.c $(spyrert_dir)/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN) $(INC) $(MODEL_INC) $(spyrert_flags) -MMD -MP -c -o $@ $<

spyrert_obj := $(spyrert_src:$(spyrert_dir)/src/%.c=$(B)/spyrert/%.o)
spyrert_asan := $(patsubst $(spyrert_dir)/src/%.c,$(B)/spyrert-asan/%.o,$(spyrert_src) $(spyrert_model_src))

$(B)/lib/libspyrert.so.1: $(spyrert_obj) $(spyrert_dir)/spyrert.map
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -shared -Wl,-soname,libspyrert.so.1 -Wl,--version-script,$(spyrert_dir)/spyrert.map \
		-Wl,-z,defs -o $@ $(spyrert_obj) $(spyrert_libs)

$(SPYRERT): $(B)/lib/libspyrert.so.1
	$(Q)ln -sf libspyrert.so.1 $@

$(SPYRERT_MODEL): $(B)/spyrert/backend_model.o $(B)/model-pic/libspyremodel.a $(spyrert_dir)/spyrert-model.map
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -shared -Wl,-soname,libspyrert-model.so.1 \
		-Wl,--version-script,$(spyrert_dir)/spyrert-model.map -Wl,-z,defs -o $@ \
		$(B)/spyrert/backend_model.o $(B)/model-pic/libspyremodel.a -ldl -pthread -lm

$(SPYRERT_TEST): $(spyrert_asan)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(B)/spyrert/spyrert.pc: $(spyrert_dir)/spyrert.pc.in
	$(Q)mkdir -p $(@D)
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|1.0|' $< >$@

# One page per public function, from the comments of the header.
$(B)/man3/.made: $(spyrert_dir)/include/spyrert.h $(spyrert_dir)/man/man3.py
	$(call say,MAN,$(@D))
	$(Q)mkdir -p $(@D)
	$(Q)python3 $(spyrert_dir)/man/man3.py $< $(@D)
	$(Q)touch $@

# They come with it.
$(B)/man3/%.3: $(B)/man3/.made ;

ALL += $(SPYRERT) $(SPYRERT_MODEL) $(B)/spyrert/spyrert.pc $(B)/man3/.made
INSTALL_LIB += $(SPYRERT) $(B)/lib/libspyrert.so.1 $(SPYRERT_MODEL)
INSTALL_PC += $(B)/spyrert/spyrert.pc
INSTALL_INC += $(spyrert_dir)/include/spyrert.h
INSTALL_MAN += $(B)/man3/spyrert.3 $(patsubst %,$(B)/man3/%.3,$(shell sed -n 's|^ \* \(spyrert_[a-z0-9_]*\)() - .*|\1|p' $(spyrert_dir)/include/spyrert.h)) \
	$(wildcard $(spyrert_dir)/man/*.[1-8])
-include $(spyrert_obj:.o=.d) $(spyrert_asan:.o=.d) $(B)/spyrert/backend_model.d

# --- Unit tests ------------------------------------------------------------------------------

spyrert_tests := $(wildcard tests/unit/test_rt*.c)
# What they are given: the firmware image of this build, a small card, no waiting for modelled time.
spyrert_unit := $(spyrert_tests:tests/unit/%.c=$(B)/tests/unit/%)

$(spyrert_unit:$(B)/tests/unit/%=$(B)/tests/unit/obj/%.o): $(B)/tests/unit/obj/%.o: tests/unit/%.c $(spyrert_dir)/build.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN) $(INC) $(SPYREPROG_INC) -I$(spyrert_dir)/src $(spyrert_flags) \
		-DFIRMWARE='"$(abspath $(FW_IMAGE))"' -MMD -MP -c -o $@ $<

$(spyrert_unit): $(B)/tests/unit/%: $(B)/tests/unit/obj/%.o $(SPYRERT_TEST) $(SPYREPROG) $(MODEL_LIB_ASAN) $(FW_IMAGE)
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $< -Wl,--whole-archive $(SPYRERT_TEST) -Wl,--no-whole-archive \
		$(SPYREPROG) $(SPYRERT_TEST_LIBS) -lcmocka

CHECK_UNIT += $(spyrert_unit)
-include $(spyrert_unit:$(B)/tests/unit/%=$(B)/tests/unit/obj/%.d)
