#!/bin/bash
# SPDX-License-Identifier: MIT
# data.sh OUTPUT: the handwritten digits set out of Debian's python3-sklearn; nothing is installed.
. "$(dirname "$0")/../build/common.sh"

out=$1
dir=$(dirname "$out")
lock digits
[ ! -e "$out" ] || exit 0
apt_init
say DATA "$out (from python3-sklearn)"
tmp=$(mktemp -d "$SPYRE_CACHE/tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
deb_unpack "$tmp" python3-sklearn
file=$(find "$tmp" -path '*/sklearn/datasets/data/digits.csv.gz' | head -n 1)
[ -n "$file" ] || die "this python3-sklearn has no sklearn/datasets/data/digits.csv.gz"
mkdir -p "$dir"
cp "$file" "$out.new"
mv "$out.new" "$out"
