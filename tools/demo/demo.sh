#!/bin/bash
# SPDX-License-Identifier: MIT
#
# demo.sh BUILD DIGITS NETWORK [--png FILE] [--cards N ...]: boots the machine, runs spyre-demo in it, and
# checks the product on the host. What the guest writes to its file system is gone when it ends, so the result
# comes back through a disk.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=$1 data=$2 net=$3
shift 3
png=() vm=()
while [ $# -gt 0 ]; do
	case $1 in
	--png) png=(--png "$2"); shift 2 ;;
	*) vm+=("$1"); shift ;;
	esac
done
# A slower OpenBLAS than it can be would flatter the card.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE

disk=$(mktemp "$build/demo/result.XXXXXX")
trap 'rm -f "$disk"' EXIT
truncate -s 32M "$disk"
tools/spyre-vm --build "$build" --memory 1G --timeout 600 --nvme "$disk" "${vm[@]}" -- \
	"$build/tools/spyre-demo" --result /dev/nvme0n1 "$data" "$net"
"$build/tools/spyre-demo" --check "$disk" "${png[@]}" "$data"
