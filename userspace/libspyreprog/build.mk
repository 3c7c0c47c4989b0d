# SPDX-License-Identifier: MIT
# libspyreprog: job binaries, their text form, program generators.

spyreprog_dir := userspace/libspyreprog
spyreprog_src := $(wildcard $(spyreprog_dir)/*.c $(spyreprog_dir)/gen/*.c)
spyreprog_obj := $(spyreprog_src:%.c=$(B)/%.o) $(B)/$(spyreprog_dir)/sha256.o
SPYREPROG_INC := -I$(spyreprog_dir)/include
SPYREPROG := $(B)/$(spyreprog_dir)/libspyreprog.a

# The references run the defined order over columns at once; -O3 vectorises them, and contraction
# would fuse what the order keeps apart.
$(B)/$(spyreprog_dir)/%.o: $(spyreprog_dir)/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(WARN) -O3 -ffp-contract=off $(INC) $(SPYREPROG_INC) -MMD -MP -c -o $@ $<

$(B)/$(spyreprog_dir)/sha256.o: qemu-device/model/sha256.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(WARN) $(INC) -MMD -MP -c -o $@ $<

$(SPYREPROG): $(spyreprog_obj)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

ALL += $(SPYREPROG)
-include $(spyreprog_obj:.o=.d)
