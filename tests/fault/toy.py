"""Toy: the program that is saved, what its undisturbed result is, and the judgement of a run's directory after a fault."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess

from step import Step, clean_environment, wait_for

STEPS = 120
ARGUMENTS = ["--n", 3001, "--steps", STEPS, "--step-us", 1000]
BOUND = 60.0  # for a life that takes a second when nothing stands in its way
CHECKPOINT = re.compile(r"step-(\d{12})\.e(\d+)\.[0-9a-f]{8}")


class Bad(Exception):
    """A fault that was not survived: `outcome` is a counter of Tally."""

    def __init__(self, outcome, why):
        super().__init__(why)
        self.outcome = outcome


class NotHit(Exception):
    """The life made fewer calls than the one that was watched: the fault had no place, and nothing was tried."""


class Fault:
    """A plan for preload/fault.c, with the files in which the processes count and trace."""

    def __init__(self, case, run_dir, calls=None, **plan):
        self.calls_file, self.trace_file = case / "calls", case / "trace"
        self.calls_file.write_bytes(bytes(16))
        self.variables = {"CAIRN_FAULT_DIR": str(run_dir), "CAIRN_FAULT_STATE": str(self.calls_file),
                          "CAIRN_FAULT_TRACE": str(self.trace_file)}
        if calls:
            plan["calls"] = calls
        self.variables |= {f"CAIRN_FAULT_{name.upper()}": str(value) for name, value in plan.items()}

    def faults(self):
        """How many were given."""
        return int.from_bytes(self.calls_file.read_bytes()[8:], "little")

    def trace(self):
        """(call, path) of each call that counted."""
        return [tuple(line.split(" ", 1)) for line in self.trace_file.read_text().splitlines()]


def kind_of(call, path):
    """What a call is for, whatever its random name."""
    name = re.sub(r"[0-9a-f]{8,}", "*", os.path.basename(path))
    return call, re.sub(r"\d+", "#", name)


class Toy:
    def __init__(self, programs, folder, arguments=ARGUMENTS):
        self.programs, self.folder, self.arguments = programs, folder, arguments
        bare = subprocess.run([programs.toy, *map(str, arguments)], env=clean_environment(), capture_output=True, text=True,
                              check=True, timeout=BOUND)
        self.hash = int(re.search(r"^hash (\w+)$", bare.stdout, re.M)[1], 16)

    def case(self, name):
        """A fresh folder for one fault."""
        path = self.folder / name
        path.mkdir()
        return path

    def life(self, case, name, run_dir, *more, ranks=2, **options):
        return Step(self.programs, case / name, run_dir, [*self.arguments, *more], ranks, **options)

    def start(self, case, base):
        """A directory for a life under fault: (its path, step of its newest checkpoint). `base` None: a run's first life."""
        run_dir = case / "run"
        if base:
            copy_run(base, run_dir)
        return run_dir, newest_step(run_dir)

    def make_run(self):
        """A run with two checkpoints, whose life was killed and left a save behind that never was committed."""
        case = self.case("base")
        run_dir = case / "run"
        with self.life(case, "life0", run_dir, "--save-at", 8, 24, "--wait-at", 8, 24, "--hold-at", 25, "--hold-file", case / "never") as life:
            if not wait_for(lambda: len(committed(run_dir)) == 2):
                raise RuntimeError("the base run did not save:\n" + life.log())
        half = run_dir / "step-000000000099.e1.0badf00d"
        half.mkdir()
        (half / "shard-00001-model-00001-of-00001.safetensors").write_bytes(b"half of a shard")
        return run_dir

    def verify(self, run_dir, checkpoint):
        """`cairn verify`: (good, its JSON or its message)."""
        done = subprocess.run([self.programs.cairn, "verify", "--json", run_dir / checkpoint], env=clean_environment(),
                              capture_output=True, text=True, timeout=BOUND)
        if done.returncode in (0, 1) and done.stdout:
            report = json.loads(done.stdout)
            return report["good"], report
        return False, done.stderr

    def resume(self, case, run_dir, minimum, restart, ranks=3, name="after"):
        """The life after the fault: it must find `minimum` or newer, and come to the undisturbed result."""
        with self.life(case, name, run_dir, ranks=ranks, restart=restart) as life:
            if not life.join(BOUND):
                raise Bad("stuck", f"ranks {life.running()} of the next life have not ended\n" + life.log())
            resumed = life.resumed()
            if resumed is None or any(p.returncode != 0 for p in life.ranks):
                raise Bad("lost", "the next life did not resume\n" + life.log())
            if resumed < minimum:
                raise Bad("lost", f"the next life began at step {resumed}; step {minimum} was committed\n" + life.log())
            if life.hash() != self.hash:
                raise Bad("mixed", f"hash {life.hash()} in place of {self.hash} after resuming at {resumed}\n" + life.log())
        return resumed

    def check_all(self, run_dir):
        """Every checkpoint must be whole."""
        for name in committed(run_dir):
            good, report = self.verify(run_dir, name)
            if not good:
                raise Bad("accepted_bad", f"{name} has a manifest and is not whole: {report}")

    def judge(self, tally, cases, work):
        """Runs work(case) for each case, some at a time, and counts what becomes of it."""
        self.judge_lists(tally, [[case] for case in cases], work)

    def judge_lists(self, tally, lists, work):
        """The same for lists of cases; those of one list one after the other."""
        def go_through(cases):
            for case in cases:
                try:
                    work(case)
                    tally.count("survived", case)
                except NotHit:
                    pass
                except Bad as bad:
                    tally.count(bad.outcome, case, str(bad))
                except Exception as error:  # of the harness itself: never to be taken for survival
                    tally.count("stuck", case, repr(error))
        # A life waits, most of the time; but of a machine's cores a container may have few, and each life has its bound.
        with concurrent.futures.ThreadPoolExecutor(min(8, 3 * len(os.sched_getaffinity(0)))) as pool:
            list(pool.map(go_through, lists))


def committed(run_dir):
    """Names of the folders that hold a manifest, newest first."""
    found = []
    for entry in os.scandir(run_dir) if pathlib.Path(run_dir).is_dir() else []:
        match = CHECKPOINT.fullmatch(entry.name)
        if match and os.path.exists(os.path.join(entry.path, "manifest.json")):
            found.append((int(match[2]), int(match[1]), entry.name))
    return [name for _, _, name in sorted(found, reverse=True)]


def newest_step(run_dir):
    """The step of the newest committed checkpoint, 0 without one."""
    return max((int(CHECKPOINT.fullmatch(name)[1]) for name in committed(run_dir)[:1]), default=0)


def reported(life):
    """Steps that the leader said it has saved."""
    return [int(step) for step in re.findall(r"saved step (\d+) ", life.said())]


def copy_run(run_dir, to):
    shutil.copytree(run_dir, to, symlinks=True)
    return to
