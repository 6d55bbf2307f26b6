"""epoch: two leaders at once. One stands still at a chosen call and wakes up when a later life of its job owns the directory.

A run has two checkpoints (epoch 1) and half of a third. The leader of its next life (epoch 2) stops itself before or after one call; then
another life (epoch 3) starts, takes over, saves, and is held while it runs. Now the stale leader goes on, to its end. Asserted from outside:

  - nothing that was there when it woke up was changed or removed, of what the newer life has or may need: checkpoints, RUN, EPOCH-…,
    PARENT-…, CONTROL, FINISHED, tags, strikes;
  - it made no checkpoint, and no file of the run's directory: only its journal's lines, its own ALIVE-… and
    PARENT-… (which is on nobody's line);
  - it has said why it stopped, naming the newer epoch;
  - the newer life ends with the right result; every checkpoint is whole; one more life resumes from its end.

Once on one directory, and once with the two lives on two mounts with caches of their own (sshfs.py), both filled before the other life came.
"""
import contextlib
import hashlib
import json
import os
import re
import signal
import sys

import sshfs
from step import stopped, wait_for
from toy import BOUND, STEPS, Bad, Fault, committed, copy_run, newest_step, reported

# name: action, calls, path, keep. What a leader reads before and after is in runtime/catalog/{epoch,commit,removal}.cc.
POINTS = {
    "claim": ("stop", "link", "*/EPOCH-*", 2),                      # two contenders for one number
    "claimed": ("stop-after", "link", "*/EPOCH-*", 2),
    "take-over": ("stop", "rename", "*/dead-step-*", 2),            # about to put an older attempt aside
    "parent": ("stop", "link", "*/PARENT-*", 2),                    # restored, and not yet said so
    "attempt": ("stop", "mkdir", "*/step-*", 2),                    # about to begin an attempt, behind the newer life's back
    "drain": ("stop", "create", "*/shard-*.sums", 2),               # before the fence of the commit
    "fenced": ("stop", "create", "*/index.bin", 2),          # the fence was read, nothing published
    "manifest": ("stop", "rename", "*/manifest.json", 2),           # the fence was read, the commit is the next call
    "committed": ("stop-after", "rename", "*/manifest.json", 2),    # before the fence behind the commit
    "prune": ("stop", "rename", "*/removed-e2-{oldest}", 1),    # the fence was read, the checkpoint goes next
    "pruning": ("stop-after", "rename", "*/removed-e2-{oldest}", 1),
    "removal": ("stop", "unlink", "*/removed-e2-{oldest}/manifest.json", 1),  # both fences were read
    "pruned": ("stop-after", "unlink", "*/removed-e2-{oldest}", 1),  # the next checkpoint's fence is still to be read
    "end": ("stop", "rename", "*/FINISHED", 2),                     # the fence was read, FINISHED goes next
}
SHORT_MOUNTED = ("claim", "attempt", "manifest", "committed", "prune", "removal")
SAID = re.compile(r"is owned by epoch 3|claimed meanwhile: epoch|is in use by job 100")
OWN = re.compile(r"journal\.jsonl|ALIVE-\d+|PARENT-00000002|CURRENT|\.tmp-.*|dead-.*|removed-.*")


def epoch(toy, tally, random, full):
    base = toy.make_run()
    cases = [("one", name) for name in POINTS]
    why_not = sshfs.missing()
    if why_not:
        print(f"epoch: not over two mounts: {why_not}", file=sys.stderr)
    else:
        cases += [("mounts", name) for name in POINTS if full or name in SHORT_MOUNTED]
    toy.judge(tally, cases + [("one", "race", n) for n in range(40 if full else 4)],
              lambda case: race(toy, *case) if case[1] == "race" else overtake(toy, base, *case))


@contextlib.contextmanager
def directories(toy, case, base, where):
    """(as the stale life sees the run's directory, as the newer one does, as it is)"""
    disk = case / "disk"
    disk.mkdir()
    run_dir = copy_run(base, disk / "run")
    if where == "one":
        yield run_dir, run_dir, run_dir
        return
    with sshfs.Mount(disk, case / "a") as a, sshfs.Mount(disk, case / "b") as b:
        for mount in (a, b):
            look_at(mount.at)
        yield a.at / "run", b.at / "run", run_dir


def look_at(folder):
    """Fills a client's cache."""
    for path, _, files in os.walk(folder):
        for file in files:
            os.stat(os.path.join(path, file))


def overtake(toy, base, where, name):
    case = toy.case(f"{where}-{name}")
    action, calls, path, keep = POINTS[name]
    with directories(toy, case, base, where) as (stale_dir, newer_dir, disk):
        path = path.format(oldest=committed(disk)[-1])
        fault = Fault(case, stale_dir, calls, action=action, path=path, first=1)
        before = newest_step(disk)
        save_at = [] if name == "end" else ["--save-at", before + 16]
        with toy.life(case, "stale", stale_dir, *save_at, restart=1, fault=fault.variables, faulty=[0],
                      settings={"CAIRN_KEEP": f"last={keep}"}) as stale:
            if not wait_for(lambda: stopped(stale.ranks[0].pid), BOUND):
                raise Bad("stuck", f"the leader did not come to its point: {fault.trace()}\n" + stale.log())
            go, save_at = case / "go", newest_step(disk) + 8
            with toy.life(case, "newer", newer_dir, "--save-at", save_at, "--wait-at", save_at, "--hold-at", save_at + 1,
                          "--hold-file", go, restart=2, settings={"CAIRN_KEEP": "last=9"}) as newer:
                # In the case "end" there is nothing left to do for it.
                if not wait_for(lambda: reported(newer) or not newer.running(), BOUND):
                    raise Bad("stuck", "the newer life does not save\n" + newer.log())
                there = relied_upon(disk)
                stale.signal(0, signal.SIGCONT)
                if not stale.join(BOUND):
                    raise Bad("stuck", f"the stale life has not ended\n" + stale.log())
                now = relied_upon(disk)
                if where == "mounts":
                    look_at(newer_dir)
                compare(there, now, name, stale)
                if name != "end" and not SAID.search(stale.log()):  # there nothing is left that could be refused
                    raise Bad("accepted_bad", "the stale life does not say why it stopped\n" + stale.log())
                go.touch()
                if not newer.join(BOUND) or any(p.returncode for p in newer.ranks):
                    raise Bad("stuck", "the newer life did not come to its end\n" + newer.log())
                if newer.hash() != toy.hash:
                    raise Bad("mixed", "another result\n" + newer.log())
            toy.check_all(disk)
            if newest_step(disk) != STEPS:
                raise Bad("lost", f"the newer life's end is not there: {committed(disk)}\n" + newer.log())
        toy.resume(case, disk, STEPS, restart=3)


def compare(there, now, name, stale):
    changed = sorted(path for path in there if now.get(path) != there[path])
    if changed:
        raise Bad("lost", f"{name}: changed or gone: {changed}\n" + stale.log())
    made = sorted(path for path in now if path not in there)
    if any(path.endswith("/manifest.json") for path in made):
        raise Bad("mixed", f"{name}: the stale life has committed: {made}\n" + stale.log())
    # An attempt of its own that it began and had to leave is the next life's to remove.
    stray = [path for path in made if not re.match(r"step-\d+\.e2\.", path)]
    if stray:
        raise Bad("accepted_bad", f"{name}: made by the stale life: {stray}\n" + stale.log())


def relied_upon(run_dir):
    """Hashes of all files that another life may read, by path."""
    found = {}
    for path in sorted(run_dir.rglob("*")):
        name = path.relative_to(run_dir)
        if path.is_file() and not any(OWN.fullmatch(part) for part in name.parts):
            content = path.read_bytes()
            if path.name == "FINISHED":  # says when, too
                content = json.loads(content)["checkpoint"].encode()
            found[str(name)] = hashlib.sha256(content).hexdigest()
    return found


def race(toy, where, _, n):
    """Two lives that nobody knows to be each other's successor start in one empty directory at the same time: one owns it, the other one
    refuses to run."""
    case = toy.case(f"race-{n}")
    run_dir = case / "run"
    with toy.life(case, "left", run_dir) as left, toy.life(case, "right", run_dir) as right:
        if not left.join(BOUND) or not right.join(BOUND):
            raise Bad("stuck", "not both have ended\n" + left.log() + right.log())
        codes = {tuple(p.returncode for p in life.ranks) for life in (left, right)}
        # The later one may also have come when the first one had ended in good order: then it finds a finished run.
        if codes not in ({(0, 0), (3, 3)}, {(0, 0)}):
            raise Bad("mixed", f"{codes}\n" + left.log() + right.log())
        for life in (left, right):
            if life.ranks[0].returncode == 0 and life.hash() != toy.hash:
                raise Bad("mixed", "another result\n" + life.log())
            if life.ranks[0].returncode == 3 and not SAID.search(life.log()):
                raise Bad("accepted_bad", "it does not say why\n" + life.log())
    toy.check_all(run_dir)
    toy.resume(case, run_dir, STEPS, restart=1)
