#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""spyre-smi: exit codes, JSON and table, on cards that the library makes in the process. Prints TAP."""
import json
import os
import subprocess

SMI = "@SMI@"
MODEL = {"SPYRERT_BACKEND": "model", "SPYRERT_FIRMWARE": "@FIRMWARE@", "SPYRERT_MODEL_MEMORY": "1G"}
count = failed = 0


def run(args, env=None):
    full = {k: v for k, v in os.environ.items() if not k.startswith("SPYRE")}
    full.update(env or {})
    p = subprocess.run([SMI] + args, env=full, capture_output=True, text=True, timeout=60, check=False)
    return p.returncode, p.stdout, p.stderr


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
rc, out, err = run(["--help"])
check("help", rc == 0 and "--json" in out, (rc, out, err))
print(f"1..{count}")
raise SystemExit(failed != 0)
