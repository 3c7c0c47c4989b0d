#!/bin/bash
# SPDX-License-Identifier: MIT
# Usage: qemu.sh fetch
#        qemu.sh build OUTDIR
#
# fetch: Debian's QEMU 10.0 source package, patched as Debian does and with the
# few lines of qemu.patch that name our folder, configured small.
# build: put the checkout's card in and build; the results go to OUTDIR.
#
# Source and build tree live in the cache, keyed by package version and by the
# text that decides the configuration. All checkouts share them: under a lock
# each one copies its files in (only those that differ, so that ninja rebuilds
# only what they touch), builds, and takes the results away.

. "$(dirname "$0")/common.sh"

HERE=$SRCDIR/tools/build
QDIR=$SPYRE_CACHE/qemu
JOBS=${JOBS:-$(nproc)}

CONFIGURE=(
	--target-list=x86_64-softmmu
	--with-devices-x86_64=spyre
	--without-default-features
	--without-default-devices
	--enable-tcg
	--enable-kvm
	--enable-virtfs
	--enable-attr
	--enable-trace-backends=log
	--disable-docs
	--disable-download
	--disable-fdt
	--disable-debug-info
	--disable-werror
	--disable-install-blobs
)

# What -kernel needs of the boot ROMs.
ROMS=(pvh.bin linuxboot_dma.bin kvmvapic.bin)

confkey() {
	{
		printf '%s\n' "${CONFIGURE[@]}"
		cat "$HERE/qemu.mak"
		# What stands above the first file's name changes nothing.
		sed -n '/^--- /,$p' "$HERE/qemu.patch"
		gcc -dumpfullversion
	} | sha256sum | cut -c1-12
}

# sync_tree FROM TO [EXCEPT]: make TO a copy of FROM without touching equal
# files; the folder EXCEPT of TO is left alone.
sync_tree() {
	local from=$1 to=$2 except=${3:-.none} f
	mkdir -p "$to"
	(cd "$to" && find . -path "./$except" -prune -o -type f -print) |
	while IFS= read -r f; do
		[ -e "$from/$f" ] || rm -f "$to/$f"
	done
	[ -d "$from" ] || return 0
	(cd "$from" && find . -type f ! -name '*~' ! -name '.*' -print) |
	while IFS= read -r f; do
		cmp -s "$from/$f" "$to/$f" && continue
		mkdir -p "$to/$(dirname "$f")"
		cp "$from/$f" "$to/$f"
	done
}

sync_card() {
	local src=$1
	sync_tree "$SRCDIR/qemu-device" "$src/hw/misc/spyre" include
	sync_tree "$SRCDIR/include" "$src/hw/misc/spyre/include"
	sync_tree "$SRCDIR/tests/qtest" "$src/tests/qtest/spyre"
}

fetch() {
	local ver tmp
	if [ -e "$QDIR/version" ] && [ -z "${UPDATE:-}" ]; then
		ver=$(cat "$QDIR/version")
	else
		apt_init
		ver=$(apt_private apt-cache showsrc --only-source qemu |
			sed -n 's/^Version: //p' | grep -E '^1:10\.0\.' | sort -V | tail -n 1)
		[ -n "$ver" ] || die "no QEMU 10.0 source package in the Debian suites"
	fi
	# dir is what build works on.
	dir=$QDIR/${ver#*:}-$(confkey)
	if [ ! -e "$dir/src/.spyre-complete" ]; then
		apt_init
		say QEMU "source package $ver"
		tmp=$SCRATCH/new
		rm -rf "$dir"
		mkdir -p "$tmp" "$dir"
		(
			cd "$tmp"
			quiet "$QDIR/fetch.log" apt_private apt-get source --download-only "qemu=$ver" &&
			quiet "$QDIR/unpack.log" dpkg-source --no-check -x ./*.dsc src &&
			quiet "$QDIR/patch.log" patch -d src -p1 -i "$HERE/qemu.patch"
		) || die "cannot fetch the QEMU source"
		mv "$tmp/src" "$dir/src"
		rm -rf "$tmp"
		cp "$HERE/qemu.mak" "$dir/src/configs/devices/x86_64-softmmu/spyre.mak"
		touch "$dir/src/.spyre-complete"
	fi
	echo "$ver" >"$QDIR/version"
	ln -sfn "${dir##*/}" "$QDIR/current"
}

# The boot ROMs for -kernel. The Debian source has no binaries, and QEMU's own
# build makes them only where a whole 32-bit toolchain is; -m32 is enough.
build_roms() {
	local rom=$1/build/pc-bios/optionrom f missing=
	for f in "${ROMS[@]}"; do
		[ -s "$rom/$f" ] || missing=1
	done
	[ -n "$missing" ] || return 0
	printf '%s\n' "TOPSRC_DIR=$1/src" EXTRA_CFLAGS=-m32 CC=gcc CCAS=gcc LD=ld \
		OBJCOPY=objcopy >"$rom/config.mak"
	rm -f "$rom/config-cc.mak"
	quiet "$1/roms.log" make -C "$rom" all || die "QEMU's boot ROMs do not build"
}

build() {
	local out=$1 t
	fetch
	tool_meson
	sync_card "$dir/src"
	# The build of a cache that was copied or moved goes on with the sources of the old place.
	if [ ! -e "$dir/build/build.ninja" ] ||
	   ! grep -sqxF "SRC_PATH=$(cd "$dir/src" && pwd -P)" "$dir/build/config-host.mak"; then
		say QEMU "configure"
		rm -rf "$dir/build"
		mkdir -p "$dir/build"
		(cd "$dir/build" && quiet "$dir/configure.log" ../src/configure "${CONFIGURE[@]}") ||
			{ rm -f "$dir/build/build.ninja"; die "QEMU does not configure"; }
		say QEMU "build (the first one takes about ten minutes)"
	fi
	quiet "$dir/build.log" ninja -C "$dir/build" -j "$JOBS" qemu-system-x86_64 spyre-qtests ||
		die "QEMU does not build"
	build_roms "$dir"
	mkdir -p "$out/qtest" "$out/pc-bios"
	for t in "${ROMS[@]}"; do
		cp -u "$dir/build/pc-bios/optionrom/$t" "$out/pc-bios/"
	done
	cp --preserve=timestamps "$dir/build/qemu-system-x86_64" "$out/.new"
	mv -f "$out/.new" "$out/qemu-system-x86_64"
	rm -f "$out"/qtest/*
	for t in "$dir/build/tests/qtest/spyre"/*; do
		# Of a test that another checkout has there may be a program, but no source.
		[ -f "$t" ] && [ -x "$t" ] && [ -e "$SRCDIR/tests/qtest/${t##*/}.c" ] || continue
		cp --preserve=timestamps "$t" "$out/qtest/"
	done
}

lock qemu
case ${1:-} in
fetch) fetch ;;
build) build "${2:?usage: qemu.sh build OUTDIR}" ;;
*) die "usage: qemu.sh fetch | build OUTDIR" ;;
esac
