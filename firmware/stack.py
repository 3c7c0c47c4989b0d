#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bound of the firmware's stacks, from the compiler's call graph and frames. Fails when one does not fit.

usage: stack.py --nm NM --objdump OBJDUMP --source COMMAND.C --out FILE ELF GRAPH...

Frames and calls of C functions come from gcc's -fcallgraph-info=su files (GRAPH), those of libgcc and of
assembler from the linked code. Every direct call of the linked code must be in the graph too, so none can
be forgotten. Refused: recursion, frames of variable size, indirect calls that are not listed in INDIRECT,
an instruction that could let an interrupt in (there is no nesting: exceptions have a stack of their own,
and one more inside their handler stops the core).

FILE has a line "STACK BYTES SIZE PATH" for each stack: worst use, size, the calls that lead there.
"""

import argparse
import re
import subprocess
import sys

# Function with an indirect call: the table that holds all its targets, "{ length, function }" a row.
INDIRECT = {"command": "handlers"}
# Root, symbols of the stack's end and top, bytes at the end that are not for frames (the mark of main.c).
STACKS = [
    ("main", "fw_main", "fw_stack_end", "fw_stack_top", 4),
    ("trap", "fw_trap", "fw_trap_stack", "fw_trap_stack_top", 0),
]
# Assembler: enters the roots with a fresh stack, so neither frames nor calls of it count.
ENTRY = {"_start", "trap"}


def die(text):
    sys.exit(f"stack.py: {text}")


def run(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def name_of(title):
    """Title in the graph ("file:function" for static ones) to symbol."""
    return title.rsplit(":", 1)[-1]


def read_graphs(paths):
    """frame by title, calls by title, indirect callers."""
    frame, calls, indirect = {}, {}, set()
    for path in paths:
        for line in open(path, encoding="utf-8"):
            node = re.match(r'node: \{ title: "([^"]*)" label: "([^"]*)"', line)
            edge = re.match(r'edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"', line)
            if node:
                size = re.search(r"\\n(\d+) bytes \(([^)]*)\)", node[2])
                if not size:
                    continue
                if size[2] != "static":
                    die(f"{node[1]}: frame is {size[2]}; only fixed sizes can be bounded")
                frame[node[1]] = int(size[1])
                calls.setdefault(node[1], set())
            elif edge and edge[2] == "__indirect_call":
                indirect.add(edge[1])
            elif edge:
                calls.setdefault(edge[1], set()).add(edge[2])
    return frame, calls, indirect


def read_code(text):
    """Per symbol: bytes its code takes off sp, direct jumps to other symbols. Interrupts must stay off."""
    took, jumps, name = {}, {}, None
    for line in text.split("\n"):
        head = re.match(r"[0-9a-f]+ <(.+)>:$", line)
        if head:
            name = head[1]
            took.setdefault(name, 0)
            jumps.setdefault(name, set())
            continue
        part = line.split("\t")
        if len(part) < 3:
            continue
        op, args = part[2].strip(), part[3].strip() if len(part) > 3 else ""
        sp = re.match(r"sp,sp,(-?\d+)", args)
        if op.startswith(("addi", "add", "c.addi")) and sp:
            took[name] += max(0, -int(sp[1]))
        elif re.match(r"sp,", args) and name not in ENTRY and not op.startswith(("b", "s", "c.s")):
            die(f"{name}: {op} {args}: cannot follow sp")
        to = re.search(r"<([^+>]+)>$", args)
        if to and to[1] != name and (op.startswith(("j", "call", "tail", "c.j")) or op.startswith("b")):
            jumps[name].add(to[1])
        if op == "mret" or (op.startswith("csr") and "mstatus" in args and (op, args) != ("csrc", "mstatus,8") and
                            (op, args) != ("csrci", "mstatus,8")):
            die(f"{name}: {op} {args} could let interrupts in; their nesting would count")
    return took, jumps


def table_targets(source, table):
    text = open(source, encoding="utf-8").read()
    body = re.search(rf"\b{table}\[\] = \{{(.*?)\n\}};", text, re.S)
    targets = re.findall(r"\{ [^{},]*,\s*(\w+) \}", body[1]) if body else []
    if not targets:
        die(f"{source}: no table {table}[] of handlers")
    return set(targets)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--nm", required=True)
    p.add_argument("--objdump", required=True)
    p.add_argument("--source", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("elf")
    p.add_argument("graph", nargs="+")
    args = p.parse_args()

    frame, calls, indirect = read_graphs(args.graph)
    took, jumps = read_code(run(args.objdump, "-d", args.elf))
    address = {}
    for line in run(args.nm, args.elf).split("\n"):
        part = line.split()
        if len(part) == 3:
            address[part[2]] = int(part[0], 16)

    for caller in indirect:
        table = INDIRECT.get(name_of(caller))
        if not table:
            die(f"{caller}: indirect call: name the table of its targets in INDIRECT")
        for target in table_targets(args.source, table):
            title = next((t for t in frame if t.endswith(f":{target}") or t == target), None)
            if not title:
                die(f"{caller}: {target} of {table}[] is not in the call graph")
            calls[caller].add(title)

    # Static functions of several files may share a name: what one calls is then granted to all of them.
    by_name = {}
    for title in frame:
        by_name.setdefault(name_of(title), []).append(title)
    for symbol, targets in jumps.items():
        if symbol in ENTRY:
            continue
        titles = by_name.get(symbol)
        if not titles:
            frame[symbol] = took[symbol]
            calls[symbol] = set(targets)
            continue
        known = {name_of(c) for t in titles for c in calls[t]}
        for target in targets - known:
            die(f"{symbol} calls {target}, which the compiler's call graph does not say")

    memo, active = {}, []

    def worst(title):
        """Bytes and path of the deepest call below, its own frame included."""
        if title in memo:
            return memo[title]
        if title in active:
            die("recursion: " + " > ".join(name_of(t) for t in active[active.index(title):] + [title]))
        if title not in frame:
            # Inlined everywhere, or dropped by the linker: then nothing of the linked code calls it.
            if title in took:
                die(f"{title}: no frame is known")
            return 0, []
        active.append(title)
        deepest = max((worst(c) for c in calls[title]), default=(0, []), key=lambda w: w[0])
        active.pop()
        memo[title] = frame[title] + deepest[0], [name_of(title)] + deepest[1]
        return memo[title]

    lines = []
    for stack, root, end, top, kept in STACKS:
        for symbol in (root, end, top):
            if symbol not in address:
                die(f"{args.elf} has no symbol {symbol}")
        size = address[top] - address[end] - kept
        used, path = worst(root)
        if used > size:
            die(f"{stack} stack: {used} bytes of {size} by {' > '.join(path)}")
        lines.append(f"{stack} {used} {size} {'>'.join(path)}")
    with open(args.out, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    print("  STACK     " + ", ".join("{0} {1} of {2} bytes".format(*line.split()) for line in lines))


main()
