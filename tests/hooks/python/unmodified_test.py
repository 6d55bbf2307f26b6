"""Programs that do not call Cairn, under --checkpoint-attach=torch."""
import contextlib
import copy
import io
import pickle
import re
import signal
import subprocess
import sys
import unittest

from lives import HERE, ROOT, Lives, free_port, main
from step import wait_for  # of tests/fault, by way of lives

ATTACH = str(ROOT / "hooks/python/attach")
TWO_OPTIMIZERS = """
import torch
from torch import nn
model = nn.Linear(2, 2)
optimizers = [torch.optim.SGD([p], lr=0.1) for p in model.parameters()]
model(torch.ones(1, 2)).sum().backward()
[optimizer.step() for optimizer in optimizers]
print("trained")
"""


class UnmodifiedTest(Lives):
    settings = {"CAIRN_ATTACH": "torch", "PYTHONPATH": ATTACH}

    def committed(self, run):
        return sorted(int(path.parent.name[5:17]) for path in (self.folder / run).glob("step-*/manifest.json"))

    def train(self, run, steps):
        return self.life(run, 2, HERE / "unmodified.py", steps, free_port())

    def test_a_killed_program_trains_on_to_the_same_bits(self):
        with self.started("run", 2, HERE / "unmodified.py", 1 << 30, free_port(), CAIRN_CHECKPOINT="4steps") as step:
            self.assertTrue(wait_for(lambda: self.committed("run"), 120), step.log())
            step.kill()
            self.assertIn("nothing to restore; the program's own counters and its place in the data are not saved", step.said())
        steps = self.committed("run")[-1] + 5
        ended = self.train("run", steps)
        restored = int(re.search("attached to Sequential, AdamW, LinearLR, CosineAnnealingLR, SequentialLR, GradScaler: step ([0-9]+) is restored",
                                 self.log).group(1))
        self.assertEqual(ended[0][0][:2], ["loss", str(restored + 1)])
        whole = self.train("whole", steps)
        self.assertEqual(whole[0][0][:2], ["loss", "1"])
        for rank in range(2):
            self.assertEqual(ended[rank], whole[rank][restored:])


class BoundaryTest(unittest.TestCase):
    def setUp(self):
        sys.path.insert(0, str(ROOT / "hooks/python"))
        self.addCleanup(sys.path.pop, 0)
        import torch
        from cairn.torch import boundary

        self.boundary, self.x = boundary, torch.ones(1)
        self.model = torch.nn.Linear(1, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)

    def test_the_first_forward_after_a_step_is_the_boundary(self):
        seen = []
        self.boundary.after_steps_of(self.optimizer, lambda: seen.append(self.scheduler.last_epoch))
        self.model(self.x).backward()
        self.optimizer.step()
        self.optimizer.step()
        self.scheduler.step()
        self.assertEqual(seen, [])
        pickle.dumps(copy.deepcopy(self.model))
        for _ in range(2):
            self.model(self.x)
            self.assertEqual(seen, [1])
        self.optimizer.step()
        self.model(self.x)
        self.assertEqual(seen, [1, 1])

    def test_a_loop_without_boundaries_is_told_so_once(self):
        for ended, lines in ((0, 1), (1, 0)):
            said = io.StringIO()
            self.boundary.expect([self.optimizer], lambda: ended, True)
            with contextlib.redirect_stderr(said):
                for _ in range(3 * self.boundary.PATIENCE):
                    self.optimizer.step()
            self.assertEqual(said.getvalue().count("100 steps without a boundary"), lines)


class HookTest(Lives):
    """Without a runtime: what becomes of a program that cannot be attached to, and of one that has nothing to do with PyTorch."""

    def python(self, program, **environment):
        site = self.folder / "site"
        site.mkdir(exist_ok=True)
        (site / "sitecustomize.py").write_text("print('the site')\n")
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              env={"PYTHONPATH": f"{ATTACH}:{site}", "SLURM_CAIRN_ATTACH": "torch", "PATH": "/usr/bin:/bin", **environment})

    def test_the_sites_own_customization_runs_and_nothing_else_is_seen(self):
        done = self.python("import sys, sitecustomize; print(sitecustomize.__file__, [p for p in sys.path if p.endswith('attach')], 'torch' in sys.modules)")
        self.assertEqual((done.stdout, done.stderr), (f"the site\n{self.folder}/site/sitecustomize.py [] False\n", ""))

    def test_a_python_without_customization_starts_in_silence(self):
        program = f"import importlib.util, os, sys; sys.path[:] = [{ATTACH!r}]; import sitecustomize; print(sitecustomize.__file__)"
        done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True)  # many a Python has one of its distribution's
        self.assertEqual((done.stdout, done.stderr), (f"{ATTACH}/sitecustomize.py\n", ""))

    def test_a_program_with_two_optimizers_runs_unprotected_unless_it_was_saved_before(self):
        done = self.python(TWO_OPTIMIZERS)
        self.assertEqual(done.stdout, "the site\ntrained\n")
        self.assertEqual(done.stderr, "cairn: NOT PROTECTED: --checkpoint-attach=torch: there is more than one optimizer (SGD, SGD), and which step "
                         "ends an iteration cannot be told; attach in the program (cairn.torch.attach)\n")
        stopped = self.python(TWO_OPTIMIZERS, SLURM_CAIRN_SAVED="1")
        self.assertEqual(stopped.returncode, 1)
        self.assertIn("an earlier life of this job has saved", stopped.stderr)


main()
