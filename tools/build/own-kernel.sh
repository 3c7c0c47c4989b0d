#!/bin/bash
# SPDX-License-Identifier: MIT
# Usage: own-kernel.sh debug|kcsan|newest|clang
# Makes a kernel of our own from a linux-source package: own-kernel.config with
# NAME-kernel.config on top, and NAME-kernel.patch, where there is one. The result is
# $SPYRE_CACHE/kernel/NAME, keyed by version, configuration and patch.
#   debug    KASAN, UBSAN, lockdep, kmemleak and the like, fault injection, KCOV; of
#            the stock kernel's version
#   kcsan    the same version with KCSAN, which finds data races
#   newest   the newest linux-source of this Debian release and its backports (on
#            Debian 12, of Debian 13's)
#            laid out as kernel.sh says, with args, what make must be told besides
#   clang    the stock kernel's version, prepared with LLVM to compile modules against,
#            and no more: no kernel is built, so there is no Module.symvers either; it
#            has build/, args and version

. "$(dirname "$0")/common.sh"

KDIR=$SPYRE_CACHE/kernel
JOBS=${JOBS:-$(nproc)}

# The caller's: src, the source; dst, where the kernel comes to be; config, its configuration;
# args, what make must be told besides.
kmake() {
	nice make -C "$src" O="$dst/build" -j "$JOBS" "${args[@]}" "$@"
}

# lost CONFIG DOTCONFIG: the options of CONFIG that DOTCONFIG does not have as asked, of an option
# that is named twice the last.
lost() {
	local want name have
	while read -r want; do
		name=${want%%=*}
		have=$(grep "^$name=" "$2") || have=$name=n
		[ "$have" = "$want" ] || printf ' %s' "$want"
	done < <(sed -n '/^CONFIG_/p' "$1" | tac | awk -F= '!seen[$1]++' | tac)
}

configure() {
	local missing
	mkdir -p "$dst/build"
	quiet "$dst/config.log" kmake KCONFIG_ALLCONFIG="$config" allnoconfig ||
		die "the kernel in $src does not configure"
	# An option whose dependencies are not met vanishes without a word.
	missing=$(lost "$config" "$dst/build/.config")
	[ -z "$missing" ] ||
		die "this kernel's configuration drops$missing: see what the option depends on (its Kconfig" \
			"entry in $src) and ask for that too, or drop it from tools/build/*-kernel.config"
}

# unpack: the source that is a tar on standard input, into src. What other
# architectures have, and the documentation, would be half of it.
unpack() {
	rm -rf "$src" "$src.new"
	mkdir -p "$src.new" &&
		tar -xJ -C "$src.new" --strip-components=1 --exclude='*/arch/[!x]*.[cS]' --exclude='*.dts*' \
			--exclude='*/Documentation/*.rst' --exclude='*/Documentation/*.yaml' \
			--exclude='*/drivers/gpu/drm/amd/include/*' --exclude='*/tools/testing/selftests/*' &&
		mv "$src.new" "$src"
}

# patched PATCH: src is that source with PATCH from here on. Its files are those of the source but for what patch
# replaces.
patched() {
	rm -rf "$dst/source"
	cp -al "$src" "$dst/source" && patch -s -p1 -d "$dst/source" -i "$1" ||
		die "$1 does not fit linux-source $ver"
	src=$dst/source
}

prepare() {
	quiet "$dst/prepare.log" kmake modules_prepare || die "the $1 kernel's source cannot be prepared"
}

build() {
	local rel
	quiet "$dst/build.log" kmake vmlinux modules || die "the $1 kernel does not build"
	quiet "$dst/install.log" kmake INSTALL_MOD_PATH="$dst" INSTALL_MOD_STRIP=1 \
		DEPMOD=true modules_install || die "the $1 kernel's modules do not install"
	rel=$(cat "$dst/build/include/config/kernel.release")
	PATH=$PATH:/sbin:/usr/sbin depmod -b "$dst" "$rel"
	objcopy -S "$dst/build/vmlinux" "$dst/vmlinux-boot"
	echo "$rel" >"$dst/release"
	# What is left is what modules need to build, and vmlinux for gdb.
	find "$dst/build" \( -name '*.o' -o -name '.*.cmd' -o -name '*.a' \) \
		! -path "$dst/build/scripts/*" ! -path "$dst/build/tools/*" -delete
}

# stock, newest: set ver to the version of the source, src to where it is; unpack it there.
stock() {
	"$SRCDIR/tools/build/kernel.sh" fetch
	ver=$(cat "$KDIR/stock/version")
	src=$KDIR/linux-$ver
	[ -e "$src/Makefile" ] || unpack <"$KDIR/stock/linux-source.tar.xz" || die "cannot unpack linux-source $ver"
}

newest() {
	local pkg
	# What is there is used as it is; UPDATE=1 looks for a newer one.
	ver=$(cat "$KDIR/newest/version" 2>/dev/null) || ver=
	src=$KDIR/linux-$ver
	if [ -n "$ver" ] && [ -e "$src/Makefile" ] && [ -z "${UPDATE:-}" ]; then
		return 0
	fi
	apt_init
	pkg=$(apt_newest '^linux-source-[0-9.]+$')
	[ -n "$pkg" ] || die "no linux-source in the Debian suites of this machine"
	ver=$(apt_private apt-cache show --no-all-versions "$pkg" | sed -n 's/^Version: //p')
	src=$KDIR/linux-$ver
	[ ! -e "$src/Makefile" ] || return 0
	say KERNEL "linux-source $ver"
	deb_unpack "$SCRATCH/deb" "$pkg=$ver"
	unpack <"$SCRATCH/deb/usr/src/$pkg.tar.xz" || die "cannot unpack linux-source $ver"
	rm -rf "$SCRATCH/deb"
}

# make_kernel build|prepare NAME SOURCE [ARG...]: of stock or newest, by make ARG...
make_kernel() {
	local how=$1 name=$2 source=$3 args=("${@:4}") ver key src dst config patch
	lock own-kernel
	"$source"
	config=$SCRATCH/config
	mkdir -p "$SCRATCH"
	cat "$SRCDIR/tools/build/own-kernel.config" >"$config"
	[ ! -e "$SRCDIR/tools/build/$name-kernel.config" ] ||
		cat "$SRCDIR/tools/build/$name-kernel.config" >>"$config"
	patch=$SRCDIR/tools/build/$name-kernel.patch
	[ -e "$patch" ] || patch=
	key=$({ cat "$config"; printf %s "${args[*]}"; cat ${patch:+"$patch"} </dev/null; } | sha256sum | cut -c1-12)
	dst=$KDIR/$name-$ver-$key
	if [ ! -e "$dst/complete" ]; then
		case $how in
		build) say KERNEL "$name kernel from linux-source $ver (about 15 minutes)" ;;
		prepare) say KERNEL "linux-source $ver: source to compile modules against" ;;
		esac
		mkdir -p "$dst"
		[ -z "$patch" ] || patched "$patch"
		configure
		echo "${args[@]}" >"$dst/args"
		"$how" "$name"
		echo "$ver" >"$dst/version"
		touch "$dst/complete"
	fi
	ln -sfn "${dst##*/}" "$KDIR/$name"
}

case ${1:-} in
debug | kcsan) make_kernel build "$1" stock ;;
newest) make_kernel build newest newest ;;
clang) make_kernel prepare clang stock LLVM=-19 ;;
*) die "usage: own-kernel.sh debug|kcsan|newest|clang" ;;
esac
