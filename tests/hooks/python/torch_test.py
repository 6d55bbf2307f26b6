"""Trains, stops after a save, resumes on another number of ranks: the losses must be those of a training that nobody disturbed."""
import contextlib
import io
import os
import shutil
import sys
import unittest
from unittest import mock

from lives import HERE, ROOT, Lives, free_port, main


class Training(Lives):
    expected = {}

    def train(self, run, ranks, *arguments):
        """Losses by step, and the step that it resumed at; with --expect among the arguments, in self.expected what they are without Cairn."""
        said = self.life(run, ranks, HERE / "train.py", *arguments, "--losses", self.folder / f"{run}.losses", "--port", free_port())[0]
        losses, expected = ({int(words[1]): float.fromhex(words[2]) for words in said if words[0] == word} for word in ("loss", "expected"))
        self.expected = expected or self.expected
        return losses, next(int(words[1]) for words in said if words[0] == "resumed")

    def resumes(self, kind, ranks, ranks_later, optimizer="adamw"):
        options = [kind, "--optimizer", optimizer]
        before, _ = self.train("broken", ranks, *options, "--save-at", 4, "--stop-at", 4, "--expect")
        expected = self.expected
        self.assertEqual(sorted(expected), list(range(1, 9)))
        after, resumed = self.train("broken", ranks_later, *options)
        self.assertEqual(resumed, 4, self.log)
        self.assertEqual((self.folder / "broken.losses").read_text().split(), [str(step) for step in range(1, 9)])
        self.assertEqual(before, {step: expected[step] for step in range(1, 5)})
        self.assertEqual(sorted(after), [5, 6, 7, 8])
        for step, loss in after.items():
            if ranks_later == ranks:
                self.assertEqual(loss, expected[step], f"step {step} of {kind}")
            else:
                self.assertAlmostEqual(loss / expected[step], 1, delta=1e-5, msg=f"step {step} of {kind}")

    def test_a_plain_module_resumes_to_the_same_bits(self):
        self.resumes("plain", 1, 1)

    def test_a_changed_model_resumes_with_what_it_still_has(self):
        model = ["plain", "--optimizer", "odd"]
        self.train("broken", 1, *model, "--save-at", 4, "--stop-at", 4, "--expect")
        expected = self.expected
        shutil.copytree(self.folder / "broken", self.folder / "grown")
        # A renamed layer takes its optimizer's state along, tensors and numbers.
        after, resumed = self.train("broken", 1, *model, "--change", "renamed")
        self.assertEqual((resumed, after), (4, {step: expected[step] for step in range(5, 9)}))
        # A new parameter begins as the program made it, and so does its optimizer's state.
        said = self.life("grown", 1, HERE / "train.py", *model, "--change", "grown")[0]
        losses = {int(words[1]): float.fromhex(words[2]) for words in said if words[0] == "loss"}
        self.assertEqual(losses[5], expected[5])  # it is zero still
        self.assertNotEqual(losses[6], expected[6])
        self.assertIn(["missing", "model.shift", "optim.state.shift.power", "optim.state.shift.mean"], said)


class Fence(unittest.TestCase):
    def test_what_an_optimizer_changes_may_be_copied_until_its_next_step(self):
        sys.path.insert(0, str(ROOT / "hooks/python"))
        import cairn.torch
        import torch

        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
        frozen = torch.nn.Linear(2, 2)
        optimizer = torch.optim.Adam(model.parameters())
        said = []
        with mock.patch.object(cairn.Session, "add_array", lambda _, name, *__, fence, **___: said.append((name, fence)) or 0), \
                mock.patch.object(cairn.Session, "fence", lambda _: said.append("fence")):
            run = cairn.torch.attach({"model": model, "frozen": frozen}, optimizer, name="fence")
            late = {name for name, fence in said if fence}
            parameters = {f"{layer}.{kind}" for layer in (0, 1) for kind in ("weight", "bias")}
            self.assertEqual(late, {f"model.{name}" for name in parameters}
                             | {f"optim.state.{name}.{key}" for name in parameters for key in ("exp_avg", "exp_avg_sq", "step")})
            self.assertEqual({name for name, fence in said if not fence},
                             {f"model.1.{name}" for name in ("running_mean", "running_var", "num_batches_tracked")}
                             | {"frozen.weight", "frozen.bias"})
            said.clear()
            model(torch.ones(4, 3)).sum().backward()
            self.assertEqual(said, [])
            optimizer.register_step_post_hook(lambda *_: said.append("step"))
            optimizer.step()
            self.assertEqual(said, ["fence", "step"])
            run.finalize()

    def test_steps_in_cuda_graphs_which_call_no_hook_when_replayed_are_not_relied_on(self):
        sys.path.insert(0, str(ROOT / "hooks/python"))
        import cairn.torch
        import torch

        made_for_graphs, other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
        optimizers = {"first": torch.optim.SGD([{"params": made_for_graphs.parameters(), "capturable": True}], lr=0.1, momentum=0.9),
                      "second": torch.optim.SGD(other.parameters(), lr=0.1)}
        said = []
        with mock.patch.object(cairn.Session, "add_array", lambda _, name, *__, fence, **___: said.append((name, fence)) or 0), \
                mock.patch.object(cairn.Session, "fence", lambda _: said.append("fence")), \
                mock.patch.object(cairn.Session, "step", lambda *_: said.append("boundary")):
            run = cairn.torch.attach({"first": made_for_graphs, "second": other}, optimizers, name="graphs")
            self.assertEqual({name for name, fence in said if fence}, {"second.weight", "second.bias"})
            said.clear()
            optimizers["second"].step()
            run.step()
            self.assertEqual(said, ["fence", "boundary"])
            with mock.patch.object(torch.cuda, "is_initialized", lambda: True), \
                    mock.patch.object(torch.cuda, "is_current_stream_capturing", lambda: True):
                optimizers["second"].step()
            said.clear()
            run.step()
            self.assertEqual(said, ["boundary", "fence"])
            said.clear()
            with run.quiet():
                self.assertEqual(said, [])
            self.assertEqual(said, ["fence"])
            run.finalize()


class Unprotected(unittest.TestCase):
    def said(self, **variables):
        sys.path.insert(0, str(ROOT / "hooks/python"))
        import cairn.torch
        import torch

        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "CAIRN_"))}
        with mock.patch.dict(os.environ, {**environment, **variables}, clear=True), contextlib.redirect_stderr(io.StringIO()) as said, \
                cairn.torch.attach(torch.nn.Linear(1, 1), name="unprotected") as run:
            self.assertFalse(run.protected)
        return said.getvalue()

    def test_a_job_in_which_nobody_asked_for_saves_is_told_so_once(self):
        self.assertRegex(self.said(SLURM_JOB_ID="7"), r"\Acairn: not started by srun --checkpoint: nothing is saved[^\n]*\n\Z")
        for variables in ({}, {"SLURM_JOB_ID": "7", "CAIRN_LOG": "quiet"}, {"SLURM_JOB_ID": "7", "SLURM_PROCID": "1"}):
            self.assertEqual(self.said(**variables), "", variables)


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

main()
