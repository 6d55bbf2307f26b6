#!/usr/bin/env python3
"""Kills all processes of a step with SIGKILL in the middle of a save, again and again, each time in a new step that resumes the run.

usage: kill_saves.py JOB DIR LOG KILLS SRUN-ARGUMENT...

Goes on until KILLS steps were killed, and each phase of a save was struck twice. What a kill struck is read from what the dead left behind,
not from what was aimed at, and printed in a line of its own. Each step must begin (LOG tells) with the newest checkpoint that was committed
before, or with a newer one that it has made itself of what the dead had staged. The last step runs to its end, in a hurry.
"""

import json
import mmap
import os
import random
import re
import signal
import subprocess
import sys
import time

# Phase -> the longest wait from its beginning to the kill. With SLOW_IO_MS=20 it lasts that long, but for the copy, which nothing slows down.
PHASES = {"filling": 0.0003, "staged": 0.015, "drain": 0.08, "before the rename": 0.015, "after the rename": 0.015}
FILLING, STAGED = 1, 2  # docs/design/staging.md, section 5


def names(folder, pattern=""):
    try:
        return [n for n in os.listdir(folder) if re.match(pattern, n)]
    except FileNotFoundError:
        return []


class Run:
    def __init__(self, folder):
        self.folder = folder

    def epochs(self):
        return {int(n[6:]) for n in names(self.folder, r"EPOCH-\d+$")}

    def attempts(self):
        return names(self.folder, r"step-\d+\.e\d+\.")

    def committed(self, attempt):
        return os.path.exists(f"{self.folder}/{attempt}/manifest.json")

    def newest_step(self):
        """By epoch, then step."""
        found = [(int(e), int(s)) for n in self.attempts() if self.committed(n) for s, e in re.findall(r"step-(\d+)\.e(\d+)", n)]
        return max(found)[1] if found else 0

    def events(self, *kinds):
        """Lines of the journal."""
        with open(f"{self.folder}/journal.jsonl") as file:
            events = [json.loads(line) for line in file if line.endswith("\n")]
        return [e for e in events if e["event"] in kinds]

    def told(self):
        """The checkpoints of which the journal says that they are there."""
        return {e["checkpoint"] for e in self.events("saved", "rescued")}

    def rescued_step(self):
        """Of the newest epoch; 0 when it has rescued none."""
        newest = max(self.epochs())
        return max([e["step"] for e in self.events("rescued") if e["epoch"] == newest], default=0)


class Step:
    """One life: its processes, its slots in the local tier, its attempts."""

    def __init__(self, job, run, command):
        self.job, self.run = job, run
        self.tier = f"/dev/shm/cairn-{os.getuid()}"
        folders, self.old_epochs, self.old_attempts = set(self.folders()), run.epochs(), set(run.attempts())
        self.seen = set()
        self.srun = subprocess.Popen(command)
        ranks = int(next(a[2:] for a in command if re.match(r"-n\d", a)))
        while True:  # until every rank has its two slots, and the pids are those of the ranks and of the host process alone
            paths = [f"{self.tier}/{n}/slot{k}.sidecar" for n in self.folders() if n not in folders for k in (0, 1)]
            self.pids = list(self.processes())
            ready = len(paths) == 2 * ranks and all(os.path.exists(p) and os.path.getsize(p) >= 128 for p in paths)
            if ready and len(self.pids) == ranks + 1:
                break
            if self.srun.poll() is not None:
                sys.exit("the step ended before it was ready to save")
            time.sleep(0.01)
        self.slots = []
        for path in paths:
            with open(path, "rb") as file:
                self.slots.append(mmap.mmap(file.fileno(), 128, prot=mmap.PROT_READ))

    def folders(self):
        return [n for n in names(self.tier, rf"{self.job}\.") if ".shield." not in n]

    def processes(self):
        for pid in names("/proc", r"\d+$"):
            try:
                with open(f"/proc/{pid}/comm") as comm, open(f"/proc/{pid}/environ", "rb") as environ:
                    if comm.read().strip() in ("heat2d", "cairn") and f"SLURM_JOB_ID={self.job}\0".encode() in environ.read():
                        yield int(pid)
            except OSError:  # another user's, or gone
                pass

    def slot_states(self):
        return {int.from_bytes(slot[96:100], "little") for slot in self.slots}

    def attempts(self):
        return [n for n in self.run.attempts() if n not in self.old_attempts]

    def saves(self):
        """How many this life has committed so far; retention may have removed some of them again."""
        self.seen.update(filter(self.run.committed, self.attempts()))
        return len(self.seen)

    def phase(self):
        """Where the save stands, or "no save"."""
        if FILLING in self.slot_states():
            return "filling"
        for attempt in self.attempts():
            if not self.run.committed(attempt):
                files = names(f"{self.run.folder}/{attempt}")
                if any(n.startswith(".tmp-manifest.json") for n in files):
                    return "before the rename"
                return "drain" if files else "staged"
        if STAGED in self.slot_states():
            return "staged"
        told = self.run.told()
        return "no save" if all(n in told for n in self.attempts()) else "after the rename"

    def reaches(self, phase):
        return FILLING in self.slot_states() if phase == "filling" else self.phase() == phase

    def kill(self):
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
        self.srun.wait()


def main():
    job, run, log, kills, srun = sys.argv[1], Run(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5:]
    command = ["srun", f"--jobid={job}"] + srun
    seed = random.randrange(1 << 32)
    print("seed", seed, flush=True)
    rng = random.Random(seed)
    struck = dict.fromkeys(PHASES, 0)
    while sum(struck.values()) < kills or min(struck.values()) < 2:
        newest = run.newest_step()
        step = Step(job, run, command)
        aim = rng.choice([p for p in PHASES if struck[p] == min(struck.values())])
        skip = rng.randrange(2)  # the first or the second save of this life
        while step.saves() < skip or not step.reaches(aim):
            if step.saves() > skip + 4:  # a copy is easily missed: whatever goes on now is struck
                break
            if step.srun.poll() is not None:
                sys.exit("the run ended before it was killed often enough")
        end = time.monotonic() + rng.uniform(0, PHASES[aim])
        while time.monotonic() < end:
            pass
        step.kill()
        with open(log) as file:
            began = int(re.findall(r"start step=(\d+)", file.read())[-1])
        phase = step.phase()
        rescued = run.rescued_step()
        print(f"killed in phase {phase}: began with step {began}, the newest was {newest}, rescued was {rescued}", flush=True)
        if began != max(newest, rescued):
            sys.exit("that step did not resume the newest checkpoint")
        if phase in struck:
            struck[phase] += 1
    open("hurry", "w").close()
    sys.exit(subprocess.run(command).returncode)


main()
