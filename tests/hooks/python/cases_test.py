"""Ways to train that are not ways to wrap: all of them in one attached run, stopped after a save and resumed, to the same bits."""
import os
import shutil
import sys
import unittest

from lives import HERE, ROOT, Lives, free_port, main


class CasesTest(Lives):
    def train(self, run, ranks, *arguments):
        said = self.life(run, ranks, HERE / "cases.py", free_port(), *arguments)[0]
        return {(words[2], int(words[1])): float(words[3]) for words in said if words[0] == "loss"}, said

    def test_each_case_resumes_on_as_many_ranks_and_on_half_of_them_to_the_same_bits(self):
        whole, _ = self.train("whole", 4)
        before, _ = self.train("run", 4, "--stop-at", 3)
        shutil.copytree(self.folder / "run", self.folder / "half")
        for run, ranks in (("run", 4), ("half", 2)):
            after, said = self.train(run, ranks)
            self.assertEqual(said[0], ["resumed", "3"])
            for case in sorted({case for case, _ in whole} - ({"dropout"} if ranks == 2 else set())):
                with self.subTest(case, ranks=ranks):
                    self.assertEqual([before[case, step] for step in (1, 2, 3)] + [after[case, step] for step in (4, 5, 6)],
                                     [whole[case, step] for step in range(1, 7)])


class NamesTest(unittest.TestCase):
    def test_a_renamed_layer_of_one_of_two_models_is_found_with_its_optimizer_state(self):
        sys.path.insert(0, str(ROOT / "hooks/python"))
        self.addCleanup(sys.path.remove, str(ROOT / "hooks/python"))
        from cairn.torch.changes import item_renames

        self.assertEqual(item_renames({"old.*": "new.*"}, ["a", "b"], ["o"]),
                         {"a.old.*": "a.new.*", "b.old.*": "b.new.*", "o.state.a.old.*.*": "o.state.a.new.*.*", "o.state.b.old.*.*": "o.state.b.new.*.*"})
        self.assertEqual(item_renames({"old": "new"}, ["model"], ["optim"]), {"model.old": "model.new", "optim.state.old.*": "optim.state.new.*"})


class LoadTest(Lives):
    """What sharded ranks have saved, in this process, which is no rank."""

    def test_a_module_that_is_loaded_goes_on_as_the_run_did(self):
        self.life("run", 2, HERE / "train.py", "fsdp1-flat", "--save-at", 4, "--stop-at", 4, "--port", free_port())
        said = self.life("run", 1, HERE / "train.py", "ddp", "--steps", 5, "--port", free_port())[0]
        expected = next(float.fromhex(words[2]) for words in said if words[:2] == ["loss", "5"])
        os.environ["CAIRN_LIBRARY"] = str(self.build.resolve() / "runtime/libcairn.so")
        sys.path.insert(0, str(ROOT / "hooks/python"))
        self.addCleanup(sys.path.remove, str(ROOT / "hooks/python"))
        import torch
        from cairn.errors import Mismatch
        from cairn.torch import load
        from train import Net, SAMPLES, data

        x, y = data(4, 0, SAMPLES)
        with torch.device("meta"):
            shapes = Net()
        for net in (Net(), shapes, Net().double()):
            filled = load(self.folder / "run", step=4, into=net)
            self.assertEqual(sorted(filled), sorted(f"model.{name}" for name in net.state_dict()))
            loss = torch.nn.functional.cross_entropy(net(x.to(net.out.weight.dtype)), y)
            self.assertAlmostEqual(loss.item() / expected, 1, delta=1e-5)
        moments = load(self.folder / "run", step=4, only=["optim.state.out.*", "model.scale"])
        self.assertEqual(sorted(moments), ["model.scale"] + [f"optim.state.out.{name}.{key}" for name in ("bias", "weight")
                                                            for key in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")])
        self.assertEqual((moments["optim.state.out.weight.step"].item(), moments["optim.state.out.weight.exp_avg"].shape), (4, (5, 36)))
        net.extra = torch.nn.Parameter(torch.zeros(2))
        with self.assertRaisesRegex(Mismatch, "model.extra: not in the checkpoint"):
            load(self.folder / "run", into=net)
        load(self.folder / "run", into=net, only="model.out.*")


main()
