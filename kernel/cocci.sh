#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Usage: cocci.sh OUT SOURCE
# Runs every semantic patch of SOURCE (a part of linux-source) over the copy of the driver below OUT,
# in report mode; not one finding is let through. The headers that the driver shares with firmware
# and user space stay out: these have none of the kernel's macros. Not the kernel's
# scripts/coccicheck, which ends at the first semantic patch that needs an OCaml compiler. Two do,
# and are left out: one knows another driver's tables, the other (null/badzero) looks for what sparse
# reports too, a 0 that stands for NULL.
set -euo pipefail

out=$1 source=$2/scripts/coccinelle

one() {
	local log=$1/${2//\//_} options status=0
	options=$(sed -n 's/^\/\/ *Options: *//p' "$3/$2")
	# The options of a semantic patch are words.
	# shellcheck disable=SC2086
	spatch -D report --no-show-diff --very-quiet --cocci-file "$3/$2" $options --dir src/kernel \
		>"$log" 2>"$log.err" || status=$?
	if [ $status -ne 0 ]; then
		echo "spatch ended with $status on $2:"
		tail -n 5 "$log.err"
		return 1
	fi
	[ ! -s "$log" ] || { echo "$2:"; cat "$log"; return 1; }
}
export -f one

mkdir -p "$out/cocci"
mapfile -t patches < <(cd "$source" && grep -rLE '(script|initialize|finalize):ocaml' --include='*.cocci' . | sort)
[ ${#patches[@]} -ge 50 ] || { echo "$source has only ${#patches[@]} semantic patches" >&2; exit 1; }
cd "$out"
printf '%s\n' "${patches[@]#./}" |
	xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'one "$0" "$1" "$2"' cocci {} "$source"
