#!/bin/bash
# SPDX-License-Identifier: MIT
# Usage: debug-kernel.sh build
# Builds a kernel with KASAN, lockdep, kmemleak, DEBUG_ATOMIC_SLEEP and
# DMA_API_DEBUG from the linux-source package of the stock kernel's version. The
# result is $SPYRE_CACHE/kernel/debug, laid out as kernel.sh says, keyed by
# version and configuration.

. "$(dirname "$0")/common.sh"

KDIR=$SPYRE_CACHE/kernel
CONFIG=$SRCDIR/tools/build/debug-kernel.config
JOBS=${JOBS:-$(nproc)}

kmake() {
	nice make -C "$dst/src" O="$dst/build" -j "$JOBS" "$@"
}

configure() {
	local want missing=
	mkdir -p "$dst/build"
	quiet "$dst/config.log" kmake KCONFIG_ALLCONFIG="$CONFIG" allnoconfig ||
		die "the debug kernel does not configure"
	# A symbol whose dependencies are gone vanishes without a word.
	while read -r want; do
		case $want in
		*=n) ! grep -q "^${want%=n}=" "$dst/build/.config" || missing+=" $want" ;;
		*) grep -qxF "$want" "$dst/build/.config" || missing+=" $want" ;;
		esac
	done < <(grep '^CONFIG_' "$CONFIG")
	[ -z "$missing" ] || die "the kernel's configuration lost:$missing"
}

build() {
	local ver key rel
	"$SRCDIR/tools/build/kernel.sh" fetch
	lock debug-kernel
	ver=$(cat "$KDIR/stock/version")
	key=$(sha256sum "$CONFIG" | cut -c1-12)
	dst=$KDIR/debug-$ver-$key
	if [ ! -e "$dst/complete" ]; then
		say KERNEL "debug kernel from linux-source $ver (about 15 minutes)"
		if [ ! -e "$dst/src/Makefile" ]; then
			rm -rf "$dst"
			mkdir -p "$dst/src.new"
			tar -xJf "$KDIR/stock/linux-source.tar.xz" -C "$dst/src.new" --strip-components=1
			mv "$dst/src.new" "$dst/src"
		fi
		configure
		quiet "$dst/build.log" kmake vmlinux modules || die "the debug kernel does not build"
		quiet "$dst/install.log" kmake INSTALL_MOD_PATH="$dst" INSTALL_MOD_STRIP=1 \
			DEPMOD=true modules_install || die "the debug kernel's modules do not install"
		rel=$(cat "$dst/build/include/config/kernel.release")
		PATH=$PATH:/sbin:/usr/sbin depmod -b "$dst" "$rel"
		objcopy -S "$dst/build/vmlinux" "$dst/vmlinux-boot"
		echo "$rel" >"$dst/release"
		echo "$ver" >"$dst/version"
		# What is left is what modules need to build, and vmlinux for gdb.
		find "$dst/build" \( -name '*.o' -o -name '.*.cmd' -o -name '*.a' \) \
			! -path "$dst/build/scripts/*" ! -path "$dst/build/tools/*" -delete
		touch "$dst/complete"
	fi
	ln -sfn "${dst##*/}" "$KDIR/debug"
}

case ${1:-} in
build) build ;;
*) die "usage: debug-kernel.sh build" ;;
esac
