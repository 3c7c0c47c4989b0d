# SPDX-License-Identifier: MIT
#
# The whole tree from here: "make help" lists the targets. Non-recursive: each
# folder adds its rules in a build.mk of its own. Variables of a build.mk:
#
#   B, SPYRE_CACHE     where things are made; third parties' things
#   CC CFLAGS WARN INC for user-space C (gnu11); SAN: the sanitizers' flags
#   Q                  "@" unless V=1; $(call say,CC,$@) prints one short line
#   KDIR KERNEL_READY  stock kernel build folder; order-only prerequisite for it
#   ALL                what "make build" makes
#   CHECK_UNIT         host test programs, each runs alone (cmocka or TAP)
#   CHECK_HOST         the same, run one after the other (they boot machines)
#   CHECK_HOST_FULL    more of those, for check-full alone
#   CHECK_VM           test programs for the machine with the card. A word is
#                      [VAR=value,]...PROGRAM[,ARG]...; tests/run --help has the rest
#   CHECK_VM_FULL      more of those, for check-full alone
#   CHECK_DEBUG        what runs on each of OWN_KERNELS
#   CHECK_DEPS         what tests need but are not themselves
#   CHECK_FULL_DEPS    the same, for check-full alone
#   DEMO               the command line of "make demo"
#   BENCH              the command line of "make bench"; prints JSON lines
#   INSTALL_BIN INSTALL_LIB INSTALL_PC INSTALL_MAN INSTALL_INC INSTALL_UDEV
#   INSTALL_FW INSTALL_DKMS
#                      files for "make install"; INC ones keep their path below
#                      an include/ folder, DKMS ones their path in the tree

# One shell for all recipes; a failing command ends its recipe.
SHELL := /bin/bash
.SHELLFLAGS := -ec
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

B ?= build
V ?=
override V := $(filter-out 0,$(V))
export SPYRE_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/spyre
export V

# make, Kbuild and QEMU's configure all split names at blanks.
no_blank = $(if $(filter-out 0 1,$(words $(2))),$(error $(1) is "$(2)": no blanks, please; $(3)))
$(call no_blank,This folder,$(CURDIR),move the tree elsewhere)
$(call no_blank,B,$(B),build elsewhere with B=DIR)
$(call no_blank,SPYRE_CACHE,$(SPYRE_CACHE),keep it elsewhere with SPYRE_CACHE=DIR)

Q := $(if $(V),,@)
say = @$(if $(V),:,printf '  %-9s %s\n' '$(1)' '$(patsubst $(CURDIR)/%,%,$(2))')

ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin AR),default)
AR := gcc-ar
endif
WARN := -Wall -Wextra -Wmissing-prototypes -Wvla -Werror
CFLAGS ?= -O2 -g
override CFLAGS += -std=gnu11 -pthread $(WARN)
INC := -Iinclude -Iinclude/uapi
SAN := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

PREFIX ?= /usr/local
DESTDIR ?=

KDIR := $(SPYRE_CACHE)/kernel/stock/build
KERNEL_READY := $(SPYRE_CACHE)/kernel/stock/complete
# Kernels that check-full runs CHECK_DEBUG on; tools/build/own-kernel.sh makes them.
OWN_KERNELS := debug kcsan newest

ALL :=
CHECK_UNIT :=
CHECK_HOST :=
CHECK_HOST_FULL :=
FLAGS = $(patsubst -I%,-I$(CURDIR)/%,$(INC) $(SPYRERT_INC) $(SPYREPROG_INC)) $(abspath $(SPYREPROG)) \
	-L$(abspath $(B))/lib -lspyrert -Wl,-rpath,$(abspath $(B))/lib -lm
CHECK_VM :=
CHECK_VM_FULL :=
CHECK_DEBUG :=
CHECK_DEPS :=
CHECK_FULL_DEPS :=
DEMO :=
BENCH :=
INSTALL_BIN :=
INSTALL_LIB :=
INSTALL_PC :=
INSTALL_MAN :=
INSTALL_INC :=
INSTALL_UDEV :=
INSTALL_FW :=
INSTALL_DKMS :=

.PHONY: build
build:

# Packages come before anything that looks for them (pkg-config in a build.mk
# too): make rebuilds this included file first and then starts over.
NO_DEPS := clean help dist
ifneq ($(filter-out $(NO_DEPS),$(or $(MAKECMDGOALS),build)),)
-include $(B)/deps.mk
$(B)/deps.mk: tools/build/deps.txt tools/build/deps.sh tools/build/common.sh
	$(Q)tools/build/deps.sh
	$(Q)mkdir -p $(@D) && echo '# packages are there' >$@

# They look for libraries when they are read, so not before those are there.
ifneq ($(wildcard $(B)/deps.mk),)
-include qemu-device/model/build.mk
-include firmware/build.mk
-include kernel/build.mk
-include $(sort $(wildcard userspace/*/build.mk)) userspace/build.mk
-include tools/build.mk
-include tests/build.mk
-include Documentation/build.mk
endif
endif

# --- Third parties ----------------------------------------------------------

# The cache itself says what is there: deleting it must bring the work back.
$(KERNEL_READY):
	$(Q)tools/build/kernel.sh fetch

QEMU := $(B)/qemu/qemu-system-x86_64
QEMU_SRC := $(shell find qemu-device include tests/qtest -type f 2>/dev/null)
$(QEMU): $(QEMU_SRC) tools/build/qemu.sh tools/build/qemu.mak tools/build/qemu.patch tools/build/common.sh
	$(call say,QEMU,$@)
	$(Q)tools/build/qemu.sh build $(abspath $(@D))
	$(Q)touch $@
ALL += $(QEMU) $(KERNEL_READY)

# --- Targets ----------------------------------------------------------------

build: $(ALL)

.PHONY: deps
deps: $(B)/deps.mk
	$(Q)tools/build/deps.sh
	$(Q)tools/build/kernel.sh fetch
	$(Q)tools/build/qemu.sh fetch

.PHONY: vm
vm: build
	$(Q)tools/spyre-vm --build $(B) $(VMFLAGS)

.PHONY: demo
demo: build
	$(Q)$(or $(DEMO),echo 'there is no demo in this tree' >&2; exit 1)

# For gcc's command line, to use the libraries where they are built.
.PHONY: flags
flags:
	@echo '$(FLAGS)'

.PHONY: bench
bench: build
	$(Q)env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE \
		$(or $(BENCH),false) | tee $(B)/bench.jsonl; exit $${PIPESTATUS[0]}

RUN = tests/run --build $(B) $(RUNFLAGS) \
	$(addprefix --unit ,$(CHECK_UNIT)) \
	$(addprefix --qtest ,$(wildcard $(B)/qemu/qtest/*)) \
	$(addprefix --host ,$(CHECK_HOST)) \
	$(addprefix --vm ,$(CHECK_VM))

# What the words name below $(B) must be there first.
comma := ,
CHECK_ALL := $(CHECK_UNIT) $(CHECK_HOST) $(CHECK_VM)
CHECK_FULL := $(CHECK_HOST_FULL) $(CHECK_VM_FULL)
test_files = $(sort $(filter $(B)/%,$(subst $(comma), ,$(1))))

# The qtests are known only after QEMU is built, hence a second make.
.PHONY: check check-run check-full check-full-run
check: build $(call test_files,$(CHECK_ALL)) $(CHECK_DEPS)
	$(Q)$(MAKE) --no-print-directory check-run
check-run:
	$(Q)$(RUN)

check-full: build $(call test_files,$(CHECK_ALL) $(CHECK_FULL)) $(CHECK_DEPS) $(CHECK_FULL_DEPS) \
		$(OWN_KERNELS:%=%-driver)
	$(Q)$(MAKE) --no-print-directory check-full-run
check-full-run:
	$(Q)$(RUN) $(addprefix --vm ,$(CHECK_VM_FULL)) $(addprefix --host ,$(CHECK_HOST_FULL)) \
		$(addprefix --debug-kernel $(SPYRE_CACHE)/kernel/,$(OWN_KERNELS)) $(addprefix --debug ,$(CHECK_DEBUG))

# The driver for one comes to be where spyre-vm looks for it.
.PHONY: $(OWN_KERNELS:%=%-kernel) $(OWN_KERNELS:%=%-driver)
$(OWN_KERNELS:%=%-kernel): %-kernel:
	$(Q)tools/build/own-kernel.sh $*
$(OWN_KERNELS:%=%-driver): %-driver: %-kernel
	$(Q)$(MAKE) --no-print-directory kernel-for KDIR=$(SPYRE_CACHE)/kernel/$*/build \
		KOUT=$(B)/kernel-$$(cat $(SPYRE_CACHE)/kernel/$*/release)

.PHONY: install
# Not "build": what is installed needs neither QEMU nor a kernel, and root, who
# often installs, has another cache.
install: $(INSTALL_BIN) $(INSTALL_LIB) $(INSTALL_PC) $(INSTALL_INC) $(INSTALL_MAN) $(INSTALL_UDEV) \
		$(INSTALL_FW) $(INSTALL_DKMS)
	$(Q)install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig
	$(Q)$(foreach f,$(INSTALL_BIN),install -m 755 $(f) $(DESTDIR)$(PREFIX)/bin/;)
	$(Q)$(foreach f,$(INSTALL_LIB),cp -P $(f) $(DESTDIR)$(PREFIX)/lib/;)
	$(Q)$(foreach f,$(INSTALL_PC),sed 's|^prefix=.*|prefix=$(PREFIX)|' $(f) >$(DESTDIR)$(PREFIX)/lib/pkgconfig/$(notdir $(f));)
	$(Q)$(foreach f,$(INSTALL_INC),install -D -m 644 $(f) $(DESTDIR)$(PREFIX)/include/$(lastword $(subst /include/, ,/$(f)));)
	$(Q)$(foreach f,$(INSTALL_MAN),install -D -m 644 $(f) $(DESTDIR)$(PREFIX)/share/man/man$(subst .,,$(suffix $(f)))/$(notdir $(f));)
	$(Q)$(foreach f,$(INSTALL_UDEV),install -D -m 644 $(f) $(DESTDIR)/lib/udev/rules.d/$(notdir $(f));)
# The kernel looks below /lib alone; the runtime's own card beside its library.
	$(Q)$(foreach f,$(INSTALL_FW),$(foreach d,/lib $(PREFIX)/lib,install -D -m 644 $(f) $(DESTDIR)$(d)/firmware/spyre/$(notdir $(f));))
	$(Q)version=$$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' kernel/dkms.conf); src=$(DESTDIR)/usr/src/spyre-$$version; \
		$(foreach f,$(INSTALL_DKMS),install -D -m 644 $(f) $$src/$(patsubst kernel/dkms.conf,dkms.conf,$(f));)

VERSION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)

.PHONY: dist
dist:
	$(Q)mkdir -p $(B)
	$(Q)git archive --format=tar.gz --prefix=spyre-$(VERSION)/ -o $(B)/spyre-$(VERSION).tar.gz HEAD
	@echo $(B)/spyre-$(VERSION).tar.gz

.PHONY: clean
clean:
	$(Q)rm -rf $(B)

.PHONY: help
help:
	@echo 'make demo          build everything, boot a machine with a card, run the demo on it'
	@echo 'make check         every test that fits in 20 minutes on two cores'
	@echo 'make check-full    all tests, on kernels of our own too'
	@echo 'make build         QEMU with the card, firmware, driver, runtime, tools (default)'
	@echo 'make deps          install missing Debian packages; fetch kernel and QEMU source'
	@echo 'make vm            a shell in the machine (VMFLAGS="--cards 2 --smp 4 ...")'
	@echo 'make bench         the figures, to $(B)/bench.jsonl'
	@echo 'make docs          the manual, to $(B)/docs/html'
	@echo 'make debug-kernel  a kernel with KASAN, lockdep and kmemleak, for check-full;'
	@echo '                   kcsan-kernel: one that finds data races; newest-kernel: the newest Debian source'
	@echo 'make install       runtime, tools, headers, manual pages, firmware, driver for DKMS'
	@echo '                   (PREFIX, DESTDIR)'
	@echo 'make dist          source archive of HEAD'
	@echo 'make clean         remove $(B)/'
	@echo
	@echo 'V=1 shows every command. B=DIR builds elsewhere. SPYRE_CACHE=DIR holds what comes'
	@echo 'from Debian (now $(SPYRE_CACHE)); deleting it only costs time.'
	@echo 'UPDATE=1 with "make deps" looks for a newer 6.12 kernel and QEMU 10.0 in Debian.'
	@echo 'RUNFLAGS="--only REGEX -v" with "make check" runs the tests that match.'
