# SPDX-License-Identifier: MIT
# Shared by the scripts the Makefile calls: messages, the cache, locks and a
# private apt. Sourced, never run. Works with what a fresh Debian system has
# (bash, coreutils, apt, perl); nothing else may be assumed here.

set -euo pipefail

SRCDIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
SPYRE_CACHE=${SPYRE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spyre}
V=${V:-}
[ "$V" != 0 ] || V=

# say is for the few lines a person waiting for minutes wants to see;
# note is silent unless V=1.
say()  { printf '  %-9s %s\n' "$1" "${*:2}"; }
note() { [ -z "$V" ] || say "$@"; }
die()  { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# Told now, not by the first mkdir after minutes of compiling.
if ! mkdir -p "$SPYRE_CACHE" 2>/dev/null || [ ! -w "$SPYRE_CACHE" ] || [ ! -x "$SPYRE_CACHE" ]; then
	die "the cache SPYRE_CACHE=$SPYRE_CACHE cannot be written: set SPYRE_CACHE to a folder of yours"
fi

# quiet LOG CMD...: run with output in LOG; on failure show its end.
quiet() {
	local log=$1 rc=0
	shift
	mkdir -p "$(dirname "$log")"
	if [ -n "$V" ]; then
		"$@" 2>&1 | tee "$log" || rc=${PIPESTATUS[0]}
	else
		"$@" >"$log" 2>&1 || rc=$?
	fi
	if [ "$rc" -ne 0 ]; then
		tail -n 40 "$log" >&2
		printf '%s: "%s" failed (%d); full log: %s\n' "${0##*/}" "$*" "$rc" "$log" >&2
	fi
	return "$rc"
}

# lock NAME: hold an exclusive lock until this process ends, so that two makes
# (or two checkouts) never build the same thing in the cache at once. SCRATCH is
# then a name for half-made things of the holder: nothing is there at first, and
# what is there at the end is removed. After SIGKILL the next holder does that.
lock() {
	mkdir -p "$SPYRE_CACHE/lock" "$SPYRE_CACHE/tmp"
	exec {lockfd}>"$SPYRE_CACHE/lock/$1"
	if ! flock -n "$lockfd"; then
		say WAIT "another build holds $1"
		flock "$lockfd"
	fi
	SCRATCH=$SPYRE_CACHE/tmp/$1
	rm -rf "$SCRATCH"
	trap 'rm -rf "$SCRATCH"' EXIT
}

debian_codename() {
	# shellcheck disable=SC1091
	(. /etc/os-release && echo "${VERSION_CODENAME:-unknown}")
}

#
# The private apt. It reads the mirrors, keys, proxies and credentials of the
# host's own apt but has sources, lists and archives of its own in the cache:
# suites that the host does not use (backports, source packages) can be read
# without root and without a change to the host.
#
APT_DIR=$SPYRE_CACHE/apt

apt_private() {
	local tool=$1
	shift
	local opts=(
		-o Dir::Etc::sourcelist="$APT_DIR/sources.list"
		-o Dir::Etc::sourceparts="$APT_DIR/none"
		-o Dir::Etc::preferences=/dev/null
		-o Dir::Etc::preferencesparts="$APT_DIR/none"
		-o Dir::State="$APT_DIR/state"
		-o Dir::State::status=/var/lib/dpkg/status
		-o Dir::Cache="$APT_DIR/cache"
		-o Dir::Cache::pkgcache=pkgcache.bin
		-o Dir::Cache::srcpkgcache=srcpkgcache.bin
		-o Acquire::Languages=none
		-o Acquire::Retries=3
		-o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
		-o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false
		-o APT::Get::AllowUnauthenticated=false
		-q
	)
	# The _apt user cannot read a cache below a home directory.
	[ "$(id -u)" != 0 ] || opts+=(-o APT::Sandbox::User=root)
	"$tool" "${opts[@]}" "$@"
}

# Mirror roots as the host's apt would contact them: "BASE SUITE" a line.
apt_host_bases() {
	apt-get --print-uris update 2>/dev/null |
		sed -n "s|^'\([^']*[^/]\)/*/dists/\([^/']*\)/InRelease'.*|\1 \2|p"
}

apt_init() {
	local code bases main sec sources aptfd
	[ -z "${APT_READY:-}" ] || return 0
	code=$(debian_codename)
	case $code in
	bookworm | trixie) ;;
	*) die "this build knows Debian 12 (bookworm) and 13 (trixie), not '$code'" ;;
	esac
	bases=$(apt_host_bases)
	main=$(awk -v s="$code" '$2 == s {print $1; exit}' <<<"$bases")
	sec=$(awk -v s="$code-security" '$2 == s {print $1; exit}' <<<"$bases")
	[ -n "$main" ] || die "apt on this machine has no source for '$code'; add the Debian mirror to its sources"
	: "${sec:=$main-security}"
	mkdir -p "$APT_DIR/none" "$APT_DIR/state/lists/partial" "$APT_DIR/cache/archives/partial"
	sources="deb $main $code main
deb $sec $code-security main
deb $main $code-backports main
$([ "$code" = trixie ] || echo "deb $main trixie-backports main")
deb-src $main trixie main
deb-src $sec trixie-security main"
	# Kernel and QEMU may be fetched at the same time.
	exec {aptfd}>"$APT_DIR/lock"
	flock "$aptfd"
	if [ "$sources" != "$(cat "$APT_DIR/sources.list" 2>/dev/null)" ] ||
	   [ -z "$(find "$APT_DIR/updated" -mmin -1440 2>/dev/null)" ]; then
		say APT "package lists (private to $SPYRE_CACHE)"
		printf '%s\n' "$sources" >"$APT_DIR/sources.list"
		quiet "$APT_DIR/update.log" apt_private apt-get update ||
			die "cannot read the Debian package lists; is the network up?"
		touch "$APT_DIR/updated"
	fi
	exec {aptfd}>&-
	APT_READY=1
}

# apt_newest REGEX: the name that sorts newest among the packages that match.
apt_newest() {
	apt_private apt-cache search --names-only "$1" | awk '{print $1}' | sort -V | tail -n 1
}

# deb_unpack DIR PKG[=VERSION|/SUITE]...: download packages and unpack them below
# DIR; nothing is installed and no maintainer script runs. Needs a lock.
deb_unpack() {
	local dir=$1 tmp=$SCRATCH/debs deb
	shift
	rm -rf "$tmp"
	mkdir -p "$tmp"
	(
		cd "$tmp"
		quiet "$APT_DIR/download.log" apt_private apt-get download "$@" || exit 1
		mkdir -p "$dir"
		for deb in ./*.deb; do
			dpkg-deb -x "$deb" "$dir" || exit 1
		done
	) || die "cannot fetch $*"
	rm -rf "$tmp"
}

# tool_meson: put a meson that QEMU accepts (>= 1.5) on PYTHONPATH. Debian 12 has
# it in backports only, Debian 13 only outside of them; it is unpacked into the
# cache, not installed.
tool_meson() {
	local dir=$SPYRE_CACHE/tools/meson suite
	if command -v meson >/dev/null &&
	   [ "$(printf '1.5\n%s\n' "$(meson --version)" | sort -V | head -n 1)" = 1.5 ]; then
		return 0
	fi
	if [ ! -e "$dir/complete" ]; then
		apt_init
		rm -rf "$dir"
		suite=$(debian_codename)
		[ "$suite" != bookworm ] || suite+=-backports
		deb_unpack "$dir" "meson/$suite"
		touch "$dir/complete"
	fi
	export PYTHONPATH="$dir/usr/lib/python3/dist-packages${PYTHONPATH:+:$PYTHONPATH}"
	export PATH="$dir/usr/bin:$PATH"
}
