"""Trains, stops after a save, resumes on another number of ranks: the losses must be those of a run that nobody disturbed.

    torch_test.py BUILD
"""
import pathlib
import socket
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tests/fault"))
from step import Programs, Step  # noqa: E402

BUILD = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else ROOT / "build/release"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Training(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.programs = Programs(BUILD)
        self.programs.toy = sys.executable
        self.lives = 0

    def life(self, run, ranks, *arguments):
        """Losses by step of rank 0, and the step that it resumed at."""
        self.lives += 1
        logs = self.folder / f"life{self.lives}"
        with Step(self.programs, logs, self.folder / run, [HERE / "train.py", *arguments, "--port", free_port()], ranks,
                  settings={"PYTHONPATH": str(ROOT / "hooks/python"), "SLURM_CAIRN_LIB": str(BUILD.resolve() / "runtime/libcairn.so")}, restart=self.lives) as step:
            self.assertTrue(step.join(120), step.log())
            self.assertEqual([process.returncode for process in step.ranks], [0] * ranks, step.log())
            lines = [line.split() for line in step.output(0).splitlines()]
            self.log = step.log()
        return {int(line[1]): float.fromhex(line[2]) for line in lines if line[0] == "loss"}, next(int(line[1]) for line in lines if line[0] == "resumed")

    def resumes(self, kind, ranks, ranks_later, optimizer="adamw"):
        options = [kind, "--optimizer", optimizer]
        expected, _ = self.life("whole", ranks, *options)
        before, _ = self.life("broken", ranks, *options, "--save-at", 4, "--stop-at", 4)
        after, resumed = self.life("broken", ranks_later, *options)
        self.assertEqual(resumed, 4, self.log)
        self.assertEqual(before, {step: expected[step] for step in range(1, 5)})
        self.assertEqual(sorted(after), [5, 6, 7, 8])
        for step, loss in after.items():
            if ranks_later == ranks:
                self.assertEqual(loss, expected[step], f"step {step} of {kind}")
            else:
                self.assertAlmostEqual(loss / expected[step], 1, delta=1e-5, msg=f"step {step} of {kind}")

    def test_a_plain_module_resumes_to_the_same_bits(self):
        self.resumes("plain", 1, 1)


def add(kind, ranks, ranks_later, optimizer):
    def test(self):
        self.resumes(kind, ranks, ranks_later, optimizer)
    name = f"test_{kind}_with_{optimizer}_of_{ranks}_ranks_resumes_on_{ranks_later}".replace("-", "_")
    setattr(Training, name, test)


for optimizer in ("sgd", "adam", "rmsprop", "adagrad", "odd"):
    add("plain", 1, 1, optimizer)
for kind in ("ddp", "zero", "fsdp1", "fsdp1-grad", "fsdp1-none", "fsdp1-flat", "fsdp2", "tp"):
    add(kind, 2, 2, "adamw")
    add(kind, 3, 2, "adamw")
add("2d", 4, 2, "adamw")
add("2d", 4, 4, "adamw")

if __name__ == "__main__":
    unittest.main()
