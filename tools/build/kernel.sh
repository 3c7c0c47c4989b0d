#!/bin/bash
# SPDX-License-Identifier: MIT
# Usage: kernel.sh fetch
# Fetches Debian's newest stock 6.12 kernel (image, headers, kbuild, all of one
# version), unpacks it below the cache and never touches the host's own kernel.
# The result is $SPYRE_CACHE/kernel/stock, a link to a directory with
#   release   the kernel release, as uname -r prints it
#   version   the Debian package version
#   vmlinuz   the image
#   build/    what "make -C" needs to build modules
#   lib/modules/RELEASE/  the modules, with a depmod'ed index
#   source/   of linux-source, only: scripts/ (checkpatch, coccicheck) and the
#             kselftest harness
#   linux-source.tar.xz   all of it, for the debug kernel

. "$(dirname "$0")/common.sh"

KDIR=$SPYRE_CACHE/kernel

fetch() {
	local hdr rel abi ver dst tmp f
	lock kernel
	# What is there is used as it is; UPDATE=1 looks for a newer one.
	if [ -e "$KDIR/stock/complete" ] && [ -z "${UPDATE:-}" ]; then
		return 0
	fi
	apt_init
	hdr=$(apt_newest '^linux-headers-6\.12\.[0-9.]*\+deb[0-9.]+-amd64$')
	[ -n "$hdr" ] || die "no Linux 6.12 headers in the Debian suites of this machine"
	rel=${hdr#linux-headers-}
	abi=${rel%-amd64}
	ver=$(apt_private apt-cache show --no-all-versions "$hdr" | sed -n 's/^Version: //p')
	dst=$KDIR/$rel
	if [ ! -e "$dst/complete" ]; then
		say KERNEL "linux $rel ($ver): image and headers"
		tmp=$SCRATCH/new
		mkdir -p "$tmp" "$KDIR"
		deb_unpack "$tmp" "linux-image-$rel" "linux-headers-$rel" \
			"linux-headers-$abi-common" "linux-kbuild-$abi" \
			"linux-source-6.12=$ver"
		mv "$tmp/usr/src/linux-source-6.12.tar.xz" "$tmp/linux-source.tar.xz"
		mkdir "$tmp/source"
		tar -xJf "$tmp/linux-source.tar.xz" -C "$tmp/source" --strip-components=1 \
			--wildcards --no-wildcards-match-slash 'linux-source-*/scripts' \
			'linux-source-*/tools/testing/selftests/kselftest*.h' \
			'linux-source-*/.clang-format'
		rm -rf "$dst"
		mv "$tmp" "$dst"
		# The headers name each other by their installed place.
		for f in "$dst/usr/src/linux-headers-$rel/Makefile" \
			 "$dst/usr/src/linux-headers-$rel/.kernelvariables"; do
			[ ! -e "$f" ] || sed -i "s|/usr/src/|$dst/usr/src/|g" "$f"
		done
		# Debian 13 has everything below /usr.
		[ -d "$dst/lib" ] || ln -s usr/lib "$dst/lib"
		for f in "$dst/usr/src/linux-headers-$rel"/* "$dst/usr/src/linux-headers-$abi-common"/*; do
			if [ -L "$f" ] && [ ! -e "$f" ]; then
				ln -sfn "$dst/$(readlink "$f" | sed 's|^\(\.\./\)*||; s|^lib/|usr/lib/|')" "$f"
			fi
		done
		ln -sfn "usr/src/linux-headers-$rel" "$dst/build"
		ln -sfn "$dst/build" "$dst/lib/modules/$rel/build"
		ln -sfn "$dst/usr/src/linux-headers-$abi-common" "$dst/lib/modules/$rel/source"
		ln -sfn "boot/vmlinuz-$rel" "$dst/vmlinuz"
		echo "$rel" >"$dst/release"
		echo "$ver" >"$dst/version"
		PATH=$PATH:/sbin:/usr/sbin depmod -b "$dst" "$rel"
		touch "$dst/complete"
	fi
	ln -sfn "$rel" "$KDIR/stock"
}

case ${1:-} in
fetch) fetch ;;
*) die "usage: kernel.sh fetch" ;;
esac
