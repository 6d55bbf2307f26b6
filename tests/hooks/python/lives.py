"""Lives: a Python program run as the ranks of a step, life after life. For tests."""
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tests/fault"))
from step import Programs, Step  # noqa: E402

MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "plm", "isolated", "--mca", "ras", "^slurm")


def free_port():
    """None of those that the kernel gives to whoever asks for any (from 32768 on): it is free until the program under test takes it."""
    while True:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", random.randrange(20000, 30000)))
            except OSError:
                continue
            return probe.getsockname()[1]


def run_group(test, count, program, *arguments):
    """Ranks of a process group that nobody but they have started, to their end, without srun."""
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(count), "OMP_NUM_THREADS": "1",
                   "PYTHONPATH": str(ROOT / "hooks/python"), "CAIRN_LIBRARY": str(Lives.build.resolve() / "runtime/libcairn.so")}
    started = [subprocess.Popen([sys.executable, "-W", "ignore", HERE / program, *map(str, arguments)], env={**environment, "RANK": str(rank)},
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in range(count)]
    said = [process.communicate(timeout=200)[0] for process in started]
    test.assertEqual([process.returncode for process in started], [0] * count, "\n".join(said))


class Lives(unittest.TestCase):
    build = ROOT / "build/release"
    settings = {"PYTHONPATH": str(ROOT / "hooks/python")}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.programs = Programs(self.build)
        self.programs.toy = sys.executable
        self.count = 0

    def started(self, run, ranks, *arguments, launcher=(), **settings):
        """A life of the run, whose directory `run` names."""
        self.count += 1
        library = {"SLURM_CAIRN_LIB": str(self.build.resolve() / "runtime/libcairn.so")}
        return Step(self.programs, self.folder / f"life{self.count}", self.folder / run, arguments, ranks,
                    settings=self.settings | library | settings, restart=self.count, launcher=launcher)

    def life(self, run, ranks, *arguments, **settings):
        """The same to its end: what each rank said, as lists of words."""
        with self.started(run, ranks, *arguments, **settings) as step:
            self.assertTrue(step.join(300), step.log())
            self.log = step.log()
            self.assertEqual([process.returncode for process in step.ranks], [0] * ranks, self.log)
            return [[line.split() for line in step.output(rank).splitlines()] for rank in range(ranks)]

    def mpi_started(self, run, ranks, *arguments, **settings):
        """The same under mpirun, on this machine alone."""
        return self.started(run, ranks, *arguments, launcher=[*MPIRUN, "-n", str(ranks)], **settings)

    def mpi_life(self, run, ranks, *arguments, **settings):
        """The same to its end: the words that all ranks together said."""
        with self.mpi_started(run, ranks, *arguments, **settings) as step:
            self.assertTrue(step.join(300), step.log())
            self.log = step.log()
            self.assertEqual(step.ranks[0].returncode, 0, self.log)
            return [line.split() for line in step.output(0).splitlines() if line]


def main():
    """python TEST.py BUILD [UNITTEST OPTION …]"""
    Lives.build = pathlib.Path(sys.argv.pop(1))
    unittest.main()
