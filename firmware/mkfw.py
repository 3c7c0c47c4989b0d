#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a firmware image: struct spyre_fw_header (spyre/fw.h) and the loadable bytes of an ELF.

usage: mkfw.py --version TEXT ELF IMAGE
"""
import argparse
import hashlib
import struct
import sys

MAGIC = 0x57465053
HEADER_SIZE = 256
RAM_BASE = 0x10000000
RAM_SIZE = 0x80000
HW_MAJOR = 2
PROTO = (1, 0)
DIGEST_AT = 192


def load(path):
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
        if vaddr < RAM_BASE or vaddr + memsz > RAM_BASE + RAM_SIZE:
            sys.exit(f"mkfw: segment at {vaddr:#x} with {memsz} bytes is not in private RAM")
        at = vaddr - RAM_BASE
        image.extend(bytes(max(0, at + filesz - len(image))))
        image[at:at + filesz] = data[off:off + filesz]
    if not image:
        sys.exit(f"mkfw: {path} has nothing to load")
    image.extend(bytes(-len(image) % 4))
    return entry, bytes(image)


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--version", required=True, help="text of at most 31 bytes")
    args.add_argument("elf")
    args.add_argument("image")
    args = args.parse_args()
    version = args.version.encode()
    if len(version) > 31:
        sys.exit("mkfw: the version has more than 31 bytes")
    entry, body = load(args.elf)
    header = bytearray(HEADER_SIZE)
    struct.pack_into("<8I32s", header, 0, MAGIC, HEADER_SIZE, len(body), RAM_BASE, entry,
                     HW_MAJOR, *PROTO, version)
    header[DIGEST_AT:DIGEST_AT + 32] = hashlib.sha256(bytes(header) + body).digest()
    with open(args.image, "wb") as out:
        out.write(header + body)


if __name__ == "__main__":
    main()
