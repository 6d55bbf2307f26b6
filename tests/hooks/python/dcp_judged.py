"""A rank that is judged by PyTorch: what each way to wrap a model has saved into Cairn's directory, another one loads, and the checks by which PyTorch
tests its own state dicts (VerifyStateDictMixin) compare it with a model that nothing was wrapped around.

    python dcp_judged.py FOLDER     with RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
"""
import sys
import unittest

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as torch_dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.testing._internal.distributed.common_state_dict import VerifyStateDictMixin

from cairn.torch.dcp import StorageReader, StorageWriter

CPU = torch.device("cpu")
WAYS = {"plain": lambda net: net, "ddp": nn.parallel.DistributedDataParallel, "fsdp1": lambda net: FullyShardedDataParallel(net, device_id=CPU, use_orig_params=True),
        "fsdp1_flat": lambda net: FullyShardedDataParallel(net, device_id=CPU), "fsdp2": fully_shard}


def made(way, seed, steps):
    """A model with batch norm, and its optimizer, after some steps; what it holds follows from the seed."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(6, 10), nn.BatchNorm1d(10), nn.Tanh(), nn.Linear(10, 3, bias=False))
    model = WAYS[way](net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1 * seed, amsgrad=True)
    for step in range(steps):
        x = torch.randn(8, 6, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
    return model, optimizer


class Judged(VerifyStateDictMixin, unittest.TestCase):
    def assertEqual(self, one, other, *_):
        """As PyTorch's own TestCase has it, which wants packages that nobody else needs: tensors inside of dicts are compared."""
        if isinstance(one, dict) and isinstance(other, dict):
            super().assertEqual(one.keys(), other.keys())
            for key in one:
                self.assertEqual(one[key], other[key])
        elif isinstance(one, torch.Tensor):
            torch.testing.assert_close(one, other)
        else:
            super().assertEqual(one, other)

    def test_what_one_way_saves_another_loads(self):
        reference, its_optimizer = made("plain", 1, 3)
        ways = list(WAYS)[1:]
        for saves, loads in zip(ways, ways[1:] + ways[:1]):
            with self.subTest(saves=saves, loads=loads):
                folder = f"{sys.argv[1]}/{saves}"
                model, optimizer = made(saves, 1, 3)
                torch_dcp.save(dict(zip(("model", "optim"), get_state_dict(model, optimizer))), storage_writer=StorageWriter(folder))
                model, optimizer = made(loads, 2, 1)
                state = dict(zip(("model", "optim"), get_state_dict(model, optimizer)))
                torch_dcp.load(state, storage_reader=StorageReader(folder))
                set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
                own, of_optimizer = get_state_dict(model, optimizer)
                self._verify_msd(reference.state_dict(), own)
                self._verify_osd(reference, its_optimizer, its_optimizer.state_dict(), of_optimizer)
                self._verify_osd_by_load(reference, its_optimizer, torch.optim.AdamW(reference.parameters(), lr=0.1, amsgrad=True), of_optimizer)


dist.init_process_group("gloo")
torch.set_num_threads(1)
result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(unittest.defaultTestLoader.loadTestsFromTestCase(Judged))
dist.destroy_process_group()
sys.exit(not result.wasSuccessful())
