#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""spyre-smi: exit codes, JSON and table, on cards that the library makes in the process. Prints TAP."""
import json
import os
import subprocess
import tempfile

SMI = "@SMI@"
MODEL = {"SPYRERT_BACKEND": "model", "SPYRERT_FIRMWARE": "@FIRMWARE@", "SPYRERT_MODEL_MEMORY": "1G"}
count = failed = 0


def run(args, env=None):
    full = {k: v for k, v in os.environ.items() if not k.startswith("SPYRE")}
    full.update(env or {})
    p = subprocess.run([SMI] + args, env=full, capture_output=True, text=True, timeout=60, check=False)
    return p.returncode, p.stdout, p.stderr


def entry(number, kind, flags, cookie, body, timeout=0):
    words = [kind | flags << 16, cookie, timeout, 0, *body]
    return f"  entry {number}: " + " ".join(f"{w:x}" for w in words + [0] * (16 - len(words)))


# As kernel/spyre_dump.c writes it: a queue of each kind, an entry of each type, and a line of a newer driver.
DUMP = "\n".join([
    "**** spyre core dump ****", "kernel: 6.12", "device: 0000:01:00.0 serial S1 firmware 1.0.0", "reason: it hangs",
    "generation: 2", "register 0x00c: 0x00000006", "register 0x014: 0x0000000a", "register 0x030: 0x38000000",
    "register 0x100: 0x00001000", "register 0x110: 0x00000000", "register 0x1fc: 0x00000000",
    "queue: context 3 id 0 page 7 entries 64 priority 2147483648 on-card 1",
    "  tail 5 fetched 5 done 5 event-idx 5 parked 0", "  state 1 error 0 at entry 0 generation 2",
    "queue: context 3 id 9 page 16 entries 64 priority 2 on-card 0",
    "  tail 20 fetched 18 done 7 event-idx 6 parked 1", "  state 3 error 5 at entry 7 generation 2",
    entry(7, 1, 0x2001, 0xc0, [0x1c00000000, 0x1000, 2 | 3 << 32], 77),
    entry(8, 2, 0, 1, [0x80, 0x2000, 128, 3 | 4 << 32, 5, (1 << 64) - 256, 512, 0, 1024, 2048, 0]),
    entry(9, 3, 0x800, 2, [0x3000, 12]), entry(10, 5, 0, 3, [0x100, 256, 0xab]),
    entry(11, 6, 0x500, 4, [0x4000, 9, 0x5000, 6]), entry(12, 8, 0x100, 5, [0x6000]), entry(13, 99, 0x8000, 6, [1, 2]),
    entry(14, 0, 6, 7, []), "  entry 15: 1 2", "  colour blue",
    "firmware log:", "[1.000] queue: not one", ""])
WANT = ["reason: it hangs", "STATE               0x00000006  in error", "BOOT_STATUS         0x0000000a  crashed",
        "MEM_SIZE            0x38000000", "VEC0 BASE           0x00001000",
        "context 3, queue of SUBMIT: doorbell page 7, 64 entries, the kernel's, on the card",
        "context 3, queue 9: doorbell page 16, 64 entries, priority 2, not on the card",
        "tail 20, fetched 18, done 7: 11 in flight, 2 not fetched; waits for a word; next doorbell after 6",
        "in error, generation 2, failed: DEADLOCK (5) at entry 7",
        "entry 7  COMPUTE barrier symbols-host  cookie 0xc0  timeout 77 cycles",
        "program 0x1c00000000  symbols 2 at 0x1000  cores 0x00000003", "entry 8  DMAI  cookie 0x1",
        "to 0x80  from 0x2000  128 bytes  x 4 (strides -256, 1024)  x 5 (strides 512, 2048)",
        "entry 9  DMAO list  cookie 0x2", "list of 12 at 0x3000", "entry 10  FILL  cookie 0x3",
        "to 0x100  256 bytes of 0xab", "entry 11  SIGNAL host doorbell  cookie 0x4",
        "word 0x4000  value 9  then 6 to doorbell 0x5000", "entry 12  TIMESTAMP host  cookie 0x5", "word 0x6000",
        "entry 13  unknown from-host  cookie 0x6", "body 1 2 0 0 0 0 0 0 0 0 0 0",
        "entry 14  NOP response interrupt  cookie 0x7", "  entry 15: 1 2", "  colour blue", "[1.000] queue: not one"]


def check(name, good, seen):
    global count, failed
    count += 1
    if not good:
        failed += 1
    print(f"{'' if good else 'not '}ok {count} {name}")
    if not good:
        print("# " + repr(seen)[:2000])


two = dict(MODEL, SPYRERT_MODEL_CARDS="2")
rc, out, err = run(["--json"], two)
try:
    data = json.loads(out)
except ValueError:
    data = {}
cards = data.get("cards", [])
check("two cards as JSON", rc == 0 and [c["index"] for c in cards] == [0, 1], (rc, out, err))
check("a card has its numbers", bool(cards) and cards[0]["state"] == "online" and cards[0]["cores"] == 32 and
      cards[0]["memory_total"] > 0 and 0 < cards[0]["temperature_c"] < 120 and
      cards[0]["ras_records"] == 0 and cards[0]["ecc_uncorrected"] == 0, cards)
check("processes are a list", isinstance(data.get("processes"), list), data)
rc, out, err = run(["--card", "1"], two)
check("the table of one card", rc == 0 and "online" in out and sum("online" in l for l in out.split("\n")) == 1,
      (rc, out, err))
rc, out, err = run(["--card", "2"], two)
check("a card that is not there", rc == 3 and "cards are 0 to 1" in err, (rc, out, err))
rc, out, err = run([], dict(MODEL, SPYRERT_MODEL_CARDS="0"))
check("no card", rc == 3 and "no Spyre card" in err and not out, (rc, out, err))
rc, out, err = run(["--json"], dict(MODEL, SPYRERT_MODEL_CARDS="0"))
check("no card as JSON", rc == 3 and json.loads(out) == {"cards": [], "processes": []}, (rc, out, err))
rc, out, err = run([], dict(MODEL, SPYRERT_FIRMWARE="/nonexistent"))
check("no firmware image", rc == 1 and "SPYRERT_FIRMWARE" in err, (rc, out, err))
for name, value in (("SPYRERT_MODEL_CARDS", "2x"), ("SPYRERT_MODEL_THREADS", "many"), ("SPYRERT_MODEL_MEMORY", "x")):
    rc, out, err = run([], dict(MODEL, **{name: value}))
    check(f"a bad {name}", rc == 1 and f"{name} is '{value}'" in err, (rc, out, err))
rc, out, err = run([], {"SPYRERT_BACKEND": "cuda"})
check("an unknown backend", rc == 1 and "cuda" in err, (rc, out, err))
rc, out, err = run(["--loop", "soon"])
check("a bad interval", rc == 2 and "'soon'" in err, (rc, out, err))
rc, out, err = run(["--nope"])
check("an unknown option", rc == 2 and "usage" in err, (rc, out, err))
with tempfile.TemporaryDirectory() as tmp:
    path = os.path.join(tmp, "dump")
    with open(path, "w", encoding="ascii") as f:
        f.write(DUMP)
    rc, out, err = run(["--dump", path])
    lines = [line.strip() for line in out.split("\n")]
    missing = [w for w in WANT if not any(line.startswith(w.strip()) for line in lines)]
    check("a core dump", rc == 0 and not missing and not err and "VEC1" not in out, (rc, missing, out, err))
    with open(path, "w", encoding="ascii") as f:
        f.write("hello\n")
    for what, text in ((path, "no core dump"), ("/dev/null", "no core dump"), (tmp, "directory"),
                       (path + "x", "No such file")):
        rc, out, err = run(["--dump", what])
        check(f"no core dump: {text}", rc == 1 and text in err and not out, (rc, out, err))
    rc, out, err = run(["--dump", path, "--json"])
    check("a core dump and other options", rc == 2 and "--dump" in err, (rc, out, err))
rc, out, err = run(["--help"])
check("help", rc == 0 and "--json" in out, (rc, out, err))
print(f"1..{count}")
raise SystemExit(failed != 0)
