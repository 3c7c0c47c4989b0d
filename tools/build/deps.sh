#!/bin/bash
# SPDX-License-Identifier: MIT
# Usage: deps.sh [LIST]
# Installs the packages of LIST (deps.txt) that are missing, as root or through sudo.
# With nothing missing it needs neither root nor network.

. "$(dirname "$0")/common.sh"

# With multiarch dpkg answers for every architecture that it knows the package of.
native=$(dpkg --print-architecture)
have() {
	# No pipe: grep that has seen enough would end dpkg-query with SIGPIPE.
	grep -qxE "installed ($native|all)" \
		<<<"$(dpkg-query -W -f '${db:Status-Status} ${Architecture}\n' "$1" 2>/dev/null)"
}

missing=()
while read -r alt; do
	found=
	for p in ${alt//|/ }; do
		have "$p" && found=1
	done
	[ -n "$found" ] || missing+=("$alt")
done < <(sed 's/#.*//; s/[[:space:]]*$//; /^$/d' "${1:-$SRCDIR/tools/build/deps.txt}" | sort -u)
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ]; then
	run=(env)
elif command -v sudo >/dev/null; then
	run=(sudo env)
else
	die "these Debian packages are missing and there is no sudo; as root run:
  apt-get install --no-install-recommends ${missing[*]%%|*}"
fi
# sudo keeps no variables, hence env behind it.
apt=("${run[@]}" DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)

lock deps
pick() {
	want=()
	local alt p ok
	for alt in "${missing[@]}"; do
		ok=
		for p in ${alt//|/ }; do
			if [ -n "$(apt-cache policy "$p" 2>/dev/null | grep -v '(none)' | sed -n 's/^  Candidate: //p')" ]; then
				want+=("$p")
				ok=1
				break
			fi
		done
		[ -n "$ok" ] || return 1
	done
}
log=$SPYRE_CACHE/deps.log
if ! pick; then
	say APT "package lists"
	quiet "$log" "${apt[@]}" update || die "apt-get update failed; is the network up?"
	pick || die "Debian does not know one of: ${missing[*]}"
fi
say APT "installing ${#want[@]} packages: ${want[*]}"
if ! quiet "$log" "${apt[@]}" install -y --no-install-recommends "${want[@]}"; then
	# A list older than the mirror names files that are gone.
	say APT "package lists"
	quiet "$log" "${apt[@]}" update || die "apt-get update failed; is the network up?"
	quiet "$log" "${apt[@]}" install -y --no-install-recommends "${want[@]}" ||
		die "cannot install: ${want[*]}"
fi
