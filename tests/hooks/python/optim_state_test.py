"""Optimizers' states by parameter name: what PyTorch's own functions give, without gathering, and to another number of ranks."""
import contextlib
import pathlib
import sys
import tempfile
import unittest

from lives import ROOT, main, run_group

sys.path.insert(0, str(ROOT / "hooks/python"))
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook  # noqa: E402

from cairn.torch import optim_state, optim_state_dict  # noqa: E402
from cairn.torch.model import parts_of  # noqa: E402
from cairn.torch.optimizer import State  # noqa: E402


class OptimStateTest(unittest.TestCase):
    def test_what_two_ranks_give_is_pytorchs_and_three_load_it_under_other_wrappers(self):
        with tempfile.TemporaryDirectory() as folder:
            run_group(self, 2, "optim_states.py", "save", folder)
            run_group(self, 3, "optim_states.py", "load", folder)
            self.assertEqual(len(list(pathlib.Path(folder).glob("*.pt"))), 10)

    def test_a_parameter_that_no_step_has_reached_has_no_state(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False))
        optimizer = torch.optim.Adam(model.parameters())
        fresh = optim_state_dict(model, optimizer)["state"]
        self.assertEqual([fresh[name]["exp_avg"].tolist() for name in ("0.weight", "1.weight")], [[[0, 0], [0, 0]]] * 2)
        self.assertFalse(optimizer.state)
        model[0](torch.ones(1, 2)).sum().backward()
        optimizer.step()
        state = optim_state_dict(model, optimizer)["state"]
        self.assertEqual(list(state), ["0.weight"])
        self.assertTrue(torch.equal(state["0.weight"]["exp_avg"], optimizer.state[model[0].weight]["exp_avg"]))

    def test_making_state_leaves_no_other_trace_even_where_the_step_fails(self):
        class Counting(torch.optim.Optimizer):
            """Counts its steps in many places, changes what it can, and fails where that is asked for."""

            def __init__(self, parameters, fails):
                super().__init__([{"params": list(parameters)}], {"lr": torch.tensor(0.5), "betas": (0.9, 0.99), "rate": torch.ones(2), "fails": fails})
                self.calls = 0

            def step(self):
                group, = self.param_groups
                group["lr"].add_(1)
                group["rate"].add_(1)
                group.update(steps=group.get("steps", 0) + 1, betas=(0, 0))
                self.calls += 1
                self.late = True
                torch.rand(1)
                for parameter in group["params"]:
                    self.state[parameter]["sum"] = torch.zeros_like(parameter)
                    parameter.data.add_(1)
                    if group["fails"]:
                        raise RuntimeError("no memory left")

        said = []
        hooks = [register_optimizer_step_pre_hook(lambda *_: said.append("global")),
                 register_optimizer_step_post_hook(lambda *_: said.append("global"))]
        for hook in hooks:
            self.addCleanup(hook.remove)
        for fails in (False, True):
            model = torch.nn.Linear(2, 2)
            model.weight.grad = torch.ones(2, 2)
            optimizer = Counting(model.parameters(), fails)
            for register in (optimizer.register_step_pre_hook, optimizer.register_step_post_hook):
                register(lambda *_: said.append("own"))
            group, = optimizer.param_groups
            before = [(key, value, value.clone() if isinstance(value, torch.Tensor) else value) for key, value in group.items()]
            weights, attributes, generator = [parameter.detach().clone() for parameter in model.parameters()], dict(vars(optimizer)), torch.get_rng_state()
            with self.assertRaisesRegex(RuntimeError, "no memory left") if fails else contextlib.nullcontext():
                self.assertEqual(sorted(optim_state_dict(model, optimizer)["state"]), ["bias", "weight"])
            self.assertEqual(list(group), [key for key, _, _ in before])
            for key, value, content in before:
                self.assertIs(group[key], value)
                self.assertTrue(torch.equal(value, content) if isinstance(value, torch.Tensor) else value == content, key)
            self.assertEqual(vars(optimizer), attributes)
            self.assertFalse(optimizer.state)
            self.assertTrue(all(map(torch.equal, model.parameters(), weights)) and model.weight.grad.tolist() == [[1, 1], [1, 1]] and model.bias.grad is None)
            self.assertTrue(torch.equal(torch.get_rng_state(), generator))
            self.assertEqual(said, [])
            optimizer.param_groups[0]["fails"] = False
            optimizer.step()
            self.assertEqual(said, ["global", "own", "own", "global"])
            said.clear()

    def test_what_is_added_to_an_optimizer_later_has_no_name_and_is_left_out(self):
        model = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False))
        optimizer = torch.optim.SGD(model[0].parameters(), lr=0.5)
        state = State("optim", optimizer, parts_of(model[0])[1])
        optimizer.add_param_group({"params": model[1].parameters(), "lr": 0.25})
        values = state.values()
        self.assertEqual(([group["of"] for group in values["groups"]], values["scalars"], values["absent"]), ([["weight"], []], {}, []))

    def test_a_tensor_is_gathered_where_a_backend_of_the_group_serves(self):
        for backend, device, served in (("cuda:gloo", "cpu", "cuda"), ("cuda:gloo", "cuda:0", "cuda:0"), ("cpu:gloo,cuda:gloo", "cpu", "cpu")):
            dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
            try:
                self.assertEqual(optim_state._served(dist.group.WORLD, torch.device(device)), torch.device(served))
            finally:
                dist.destroy_process_group()


main()
