#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Usage: check.sh KDIR OUT SOURCE FILE...
# Builds a copy of the driver below OUT against KDIR with W=1 and sparse on every file, then runs
# checkpatch --strict and kernel-doc from SOURCE (a part of linux-source) over FILE... Not one finding
# is let through. What is switched off, and why:
#   CAMELCASE    names of message fields are public and stay as they are
#   BIT_MACRO    user space has no BIT(), in the uAPI header only
#   OPEN_ENDED_LINE, PARENTHESIS_ALIGNMENT   how trace events are written, in spyre_trace.h only
set -euo pipefail

kdir=$1 out=$2 source=$3 top=$PWD
shift 3
bad=0

log=$out/build.log
# A parallel make above shares its job server with recipes marked as makes only, and says so with the word
# "warning".
unset MAKEFLAGS MFLAGS MAKELEVEL
if ! make -s -C "$kdir" M="$out/src" W=1 C=2 CHECK=sparse CF=-D__CHECK_ENDIAN__ modules >"$log" 2>&1 ||
   grep -E '(warning|error):' "$log"; then
	echo "the driver does not build cleanly with W=1 C=2; full log: $log" >&2
	tail -n 20 "$log" >&2
	bad=1
fi

for file in "$@"; do
	ignore=CAMELCASE
	case $file in
	*/spyre_trace.h) ignore+=,OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT ;;
	*/uapi/*) ignore+=,BIT_MACRO ;;
	esac
	# Its complaints about a tree that is not there go to stderr.
	# It keeps a cache in the current folder.
	if ! found=$(cd "$out" && perl "$source/scripts/checkpatch.pl" --no-tree -f --strict --terse \
			--show-types --no-summary --ignore "$ignore" "$top/$file" 2>/dev/null) ||
	   [ -n "$found" ]; then
		echo "${found//"$top/"/}"
		bad=1
	fi
	status=0
	found=$("$source/scripts/kernel-doc" -none "$file" 2>&1) || status=$?
	if [ $status -ne 0 ] || grep -qE 'warning|error' <<<"$found"; then
		echo "$found"
		echo "kernel-doc ended with $status on $file"
		bad=1
	fi
done
exit $bad
