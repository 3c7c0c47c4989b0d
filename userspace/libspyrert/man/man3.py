#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Manual pages of section 3 from the comments in spyrert.h: man3.py HEADER OUTDIR.

A comment "name() - summary", its "@argument: text" lines and the paragraphs after them, followed by
the declaration, become OUTDIR/name.3. The comment at the top and the list of functions, under the
headings of the header, become OUTDIR/spyrert.3.
"""
import re
import sys


def escape(text):
    text = text.replace("\\", "\\\\").replace("-", "\\-")
    return "\n".join("\\&" + l if l[:1] in ".'" else l for l in text.split("\n"))


def page(name, summary, args, body, decl):
    out = [f'.TH {name.upper()} 3 "" "libspyrert 1.0" "Spyre runtime"', ".SH NAME",
           f"{name} \\- {escape(summary)}", ".SH SYNOPSIS", ".nf", ".B #include <spyrert.h>", "",
           ".B " + escape(decl).replace("\n", "\n.B "), ".fi"]
    if args:
        out.append(".SH ARGUMENTS")
        for arg, text in args:
            out += [".TP", f".I {arg}", escape(text)]
    if body:
        out.append(".SH DESCRIPTION")
        out.append("\n.PP\n".join(escape(p) for p in body))
    if decl.startswith("enum spyrert_status spyrert_"):
        out += [".SH RETURN VALUE", ".B SPYRERT_SUCCESS",
                "or an error; spyrert_last_error(3) then says what was wrong and what to do."]
    out += [".SH SEE ALSO", ".BR spyrert_init (3),", ".BR spyrert_last_error (3)"]
    return "\n".join(out) + "\n"


def overview(text):
    top = re.search(r"/\*\n \* (libspyrert: .*?)\*/", text, re.S).group(1)
    paras = [p.strip() for p in re.sub(r"^ \* ?", "", top, flags=re.M).split("\n\n")]
    out = ['.TH SPYRERT 3 "" "libspyrert 1.0" "Spyre runtime"', ".SH NAME",
           "spyrert \\- " + escape(paras[0].replace("libspyrert: ", "").rstrip(".")), ".SH SYNOPSIS",
           ".nf", ".B #include <spyrert.h>", "", ".B cc ... $(pkg\\-config \\-\\-cflags \\-\\-libs spyrert)",
           ".fi", ".SH DESCRIPTION", "\n.PP\n".join(escape(p) for p in paras[1:])]
    for m in re.finditer(r"^/\* --- (.*?) -+ \*/$|^ \* (spyrert_\w+)\(\) - (.*)$", text, re.M):
        if m.group(1):
            out.append(".SS " + escape(m.group(1)))
        else:
            out += [".TP", f".BR {m.group(2)} (3)", escape(m.group(3))]
    return "\n".join(out) + "\n"


def main():
    text = open(sys.argv[1]).read()
    count = 0
    with open(f"{sys.argv[2]}/spyrert.3", "w") as f:
        f.write(overview(text))
    for m in re.finditer(r"/\*\*\n(.*?)\*/\n(.*?;)", text, re.S):
        lines = [re.sub(r"^ \* ?", "", l).rstrip() for l in m.group(1).split("\n")]
        head = re.match(r"(\w+)\(\) - (.*)", lines[0])
        if not head:
            sys.exit(f"{sys.argv[1]}: comment without 'name() - summary': {lines[0]}")
        args, body, para = [], [], ""
        for line in lines[1:] + [""]:
            arg = re.match(r"@(\w+): (.*)", line)
            if arg:
                args.append([arg.group(1), arg.group(2)])
            elif args and not para and not body and line.startswith("  "):
                args[-1][1] += "\n" + line.strip()
            elif not line.strip():
                if para:
                    body.append(para)
                para = ""
            else:
                para += ("\n" if para else "") + line.strip()
        decl = re.sub(r"\n\s+", "\n", m.group(2))
        if head.group(1) not in decl:
            sys.exit(f"{sys.argv[1]}: comment of {head.group(1)} stands before {decl}")
        with open(f"{sys.argv[2]}/{head.group(1)}.3", "w") as f:
            f.write(page(head.group(1), head.group(2), args, body, decl))
        count += 1
    if not count:
        sys.exit(f"{sys.argv[1]}: no documented function")


main()
