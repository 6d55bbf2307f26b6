"""Context: the build that is measured, where its files go, and how its ranks are started."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fault"))
from step import Programs, Step, clean_environment  # noqa: E402


class Missing(Exception):
    """What a bench needs and this machine lacks."""


class Context:
    def __init__(self, build, scratch, python, quick):
        self.here = pathlib.Path(__file__).resolve().parent
        self.build, self.scratch, self.python, self.quick = build, scratch, python, quick
        self.rounds = 3 if quick else 11
        self.mib = 128 if quick else 1024  # of W1, over all ranks
        self.folders = 0

    def program(self, name):
        path = self.build / "tests/bench" / name
        if not path.exists():
            raise Missing(f"{path} is not built")
        return path

    def folder(self):
        """A fresh one on the disk that is measured."""
        self.folders += 1
        path = self.scratch / str(self.folders)
        path.mkdir()
        return path

    def rounds_of(self, name, *arguments, bound=1800, settings=None):
        """Runs a program that prints one JSON object a round; the rounds by workload, in the order of their appearance."""
        done = subprocess.run([self.program(name), *map(str, arguments)], env=clean_environment() | (settings or {}), stdout=subprocess.PIPE,
                              text=True, timeout=bound)
        if done.returncode != 0:
            raise RuntimeError(f"{name} ended with status {done.returncode}")
        by_workload = {}
        for line in done.stdout.splitlines():
            one = json.loads(line)
            by_workload.setdefault(one["workload"], []).append(one)
        return by_workload

    def ranks(self, count, *arguments, settings=None):
        """A Step of `count` ranks of bench_rank, and its folder on the disk that is measured."""
        folder = self.folder()
        os.mkfifo(folder / "commands")
        return self.ranks_again(folder, 0, count, *arguments, settings=settings), folder

    def ranks_again(self, folder, restart, count, *arguments, settings=None):
        """The restart-th life, from 0, of such a Step."""
        programs = Programs(self.build)
        programs.toy = self.program("bench_rank")
        return Step(programs, folder / f"logs{restart}", folder / "run", [*arguments, "--folder", folder], count, restart=restart, settings=settings)


def numbers(step, word):
    """What rank 0 printed after `word`, line by line."""
    return [float(line.split()[1]) for line in step.output(0).splitlines() if line.startswith(word + " ")]


def finish(step, bound=1800):
    """Waits for the ranks of a step; raises with what they said when one failed."""
    if not step.join(bound) or any(process.returncode for process in step.ranks):
        raise RuntimeError("the ranks did not end well:\n" + step.log())

