#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a firmware image: struct spyre_fw_header (spyre/fw.h) and the loadable bytes of an ELF.

usage: mkfw.py --layout HEADER --version TEXT ELF IMAGE

HEADER is what the build makes of layout.c: sizes and places of the header files.
"""
import argparse
import hashlib
import struct
import sys


def read_layout(path):
    return {name: int(value) for _, name, value in (line.split() for line in open(path))}


def load(path, at):
    """Entry and the bytes of an ELF32's load segments in private RAM, as one block."""
    data = open(path, "rb").read()
    if data[:6] != b"\x7fELF\x01\x01":
        sys.exit(f"mkfw: {path} is not a little-endian ELF32 file")
    machine, = struct.unpack_from("<H", data, 18)
    if machine != 243:
        sys.exit(f"mkfw: {path} is for machine {machine}, not RISC-V")
    entry, phoff = struct.unpack_from("<II", data, 24)
    phentsize, phnum = struct.unpack_from("<HH", data, 42)
    image = bytearray()
    for i in range(phnum):
        kind, off, vaddr, _, filesz, memsz = struct.unpack_from("<6I", data, phoff + i * phentsize)
        if kind != 1 or not filesz:
            continue
        if vaddr < at["RAM_BASE"] or vaddr + memsz > at["RAM_BASE"] + at["RAM_SIZE"]:
            sys.exit(f"mkfw: segment at {vaddr:#x} with {memsz} bytes is not in private RAM")
        start = vaddr - at["RAM_BASE"]
        image.extend(bytes(max(0, start + filesz - len(image))))
        image[start:start + filesz] = data[off:off + filesz]
    if not image:
        sys.exit(f"mkfw: {path} has nothing to load")
    image.extend(bytes(-len(image) % 4))
    return entry, bytes(image)


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--layout", required=True, help="definitions made from layout.c")
    args.add_argument("--version", required=True, help="text, a byte shorter than the header's field")
    args.add_argument("elf")
    args.add_argument("image")
    args = args.parse_args()
    at = read_layout(args.layout)
    version = args.version.encode()
    if len(version) >= at["VERSION_SIZE"]:
        sys.exit(f"mkfw: the version has more than {at['VERSION_SIZE'] - 1} bytes")
    entry, body = load(args.elf, at)
    header = bytearray(at["HEADER_SIZE"])
    struct.pack_into("<8I", header, 0, at["MAGIC"], at["HEADER_SIZE"], len(body), at["RAM_BASE"], entry,
                     at["HW_MAJOR"], at["PROTO_MAJOR"], at["PROTO_MINOR"])
    header[at["VERSION_AT"]:at["VERSION_AT"] + len(version)] = version
    digest = hashlib.sha256(bytes(header) + body).digest()
    header[at["DIGEST_AT"]:at["DIGEST_AT"] + at["DIGEST_SIZE"]] = digest
    with open(args.image, "wb") as out:
        out.write(header + body)


if __name__ == "__main__":
    main()
