# SPDX-License-Identifier: MIT
"""A machine with a card under load (load.c), and ways to its faults from outside."""

import collections
import json
import os
import queue
import socket
import subprocess
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

# load.c gives up after two minutes.
PATIENCE = 150
BOOT = 900


class Machine:
    """args: build, workers, seed, verbose, dmesg (or None). options: more for spyre-vm. command: instead of load."""

    def __init__(self, args, tmp, options=(), command=None):
        self.build = os.path.abspath(args.build)
        self.qmp_path = os.path.join(tmp, "qmp")
        self.log = args.dmesg or os.path.join(tmp, "dmesg")
        self.args = args
        self.lines = queue.Queue()
        self.losses = []
        self.wrong = []
        self.silent = []
        self.reports = []
        self.proc = subprocess.Popen(
            [os.path.join(TOP, "tools/spyre-vm"), "--build", self.build, "--qmp", self.qmp_path, "--dmesg", self.log,
             "--boot-timeout", str(BOOT), "--card-memory", "1G", *options, "--",
             *(command or [os.path.join(self.build, "tests/campaign/load"), str(args.workers), str(args.seed)])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
        self.errors = []
        threading.Thread(target=lambda: self.errors.extend(self.proc.stderr), daemon=True).start()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.proc.stdout:
            word = line.split()
            if word[:1] == ["loss"]:
                self.losses.append((int(word[1]), int(word[2]), int(word[3], 0), word[4] == "1"))
            elif word[:1] == ["wrong"]:
                self.wrong.append(line.strip())
            elif word[:1] == ["silent"]:
                self.silent.append(line.strip())
            else:
                self.lines.put(line.strip())
            if self.args.verbose:
                print("#   " + line.rstrip(), flush=True)
        self.lines.put(None)

    def wait(self, start, seconds=PATIENCE):
        """The next line that begins so; None when the machine says nothing or is gone."""
        end = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                return None
            if line is None:
                # Nor will the next who waits hear anything.
                self.lines.put(None)
                return None
            if line.startswith(start):
                return line
            self.reports.append(line)

    def tell(self, text):
        try:
            self.proc.stdin.write(text + "\n")
            self.proc.stdin.flush()
        except BrokenPipeError:
            pass

    def inject(self, words):
        p = subprocess.run([os.path.join(self.build, "tools/spyre-inject"), "--qmp", self.qmp_path, *words],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        return p.returncode, p.stdout.strip()

    def qmp(self, *commands):
        """Answers to commands, and the names of the events that came with them."""
        answers, events = [], []
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            s.connect(self.qmp_path)
            f = s.makefile("rw")
            f.readline()
            for c in ({"execute": "qmp_capabilities"}, *commands):
                f.write(json.dumps(c))
                f.flush()
                while True:
                    m = json.loads(f.readline())
                    if "event" in m:
                        events.append(m["event"])
                    else:
                        answers.append(m)
                        break
        return answers[1:], events

    def has_card(self):
        (a,), _ = self.qmp({"execute": "qom-list", "arguments": {"path": "/machine/peripheral"}})
        return any(c["name"] == "card0" for c in a["return"])

    def replug(self):
        """What was pulled out leaves its slot when the guest has let go of it; then another one comes."""
        # A request that meets a guest which is still busy with the removal is taken for the button of the slot.
        self.tell("gone")
        self.wait("gone ")
        end = time.monotonic() + 60
        while self.has_card():
            self.qmp({"execute": "device_del", "arguments": {"id": "card0"}})
            if time.monotonic() > end:
                return "the guest does not let go of the card that was pulled out"
            time.sleep(0.3)
        # The port says that a card is gone, then that one came and that its button was pressed. A guest that handles
        # the first late finds the new card, takes it, and gives it back for the button.
        self.tell("settle")
        self.wait("settle")
        (a,), _ = self.qmp({"execute": "device_add", "arguments": {
            "driver": "spyre", "id": "card0", "bus": "port0", "memory": 1 << 30}})
        return a.get("error", {}).get("desc", "")

    def descriptors(self):
        """The emulator's descriptors, by kind; files are the guest's, which caches what it opened."""
        count = collections.Counter()
        with open(f"/proc/{self.proc.pid}/task/{self.proc.pid}/children", encoding="ascii") as f:
            pid = f.read().split()[0]
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                to = os.readlink(f"/proc/{pid}/fd/{fd}")
            except OSError:
                continue
            if not to.startswith("/") or to.startswith(("/memfd", "/dev")):
                count[to.split("[")[0].split(" ")[0].rstrip("0123456789")] += 1
        return count

    def end(self):
        try:
            return self.proc.wait(60)
        except subprocess.TimeoutExpired:
            self.proc.terminate()
            return self.proc.wait()
