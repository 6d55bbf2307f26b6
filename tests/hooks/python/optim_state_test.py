"""Optimizers' states by parameter name: what PyTorch's own functions give, without gathering, and to another number of ranks."""
import pathlib
import sys
import tempfile
import unittest

from lives import ROOT, main, run_group


class OptimStateTest(unittest.TestCase):
    def test_what_two_ranks_give_is_pytorchs_and_three_load_it_under_other_wrappers(self):
        with tempfile.TemporaryDirectory() as folder:
            run_group(self, 2, "optim_states.py", "save", folder)
            run_group(self, 3, "optim_states.py", "load", folder)
            self.assertEqual(len(list(pathlib.Path(folder).glob("*.pt"))), 10)

    def test_state_that_is_there_stays_as_it_is_where_other_state_is_made(self):
        sys.path.insert(0, str(ROOT / "hooks/python"))
        self.addCleanup(sys.path.remove, str(ROOT / "hooks/python"))
        import torch

        from cairn.torch import optim_state_dict

        model = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False))
        optimizer = torch.optim.Adam(model.parameters())
        model[0](torch.ones(1, 2)).sum().backward()
        optimizer.step()
        moment = optimizer.state[model[0].weight]["exp_avg"].clone()
        gradient, weights = model[0].weight.grad.clone(), [parameter.detach().clone() for parameter in model.parameters()]
        state = optim_state_dict(model, optimizer)["state"]
        self.assertEqual((state["0.weight"]["step"], state["1.weight"]["exp_avg"].tolist()), (1, [[0, 0], [0, 0]]))
        self.assertTrue(torch.equal(state["0.weight"]["exp_avg"], moment))
        self.assertTrue(torch.equal(model[0].weight.grad, gradient) and model[1].weight.grad is None)
        self.assertTrue(all(map(torch.equal, model.parameters(), weights)))
        self.assertEqual(list(optimizer.state), [model[0].weight])


main()
