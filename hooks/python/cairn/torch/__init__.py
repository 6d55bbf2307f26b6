"""Cairn for PyTorch: one line attaches a run's models, optimizers, schedulers, scalers, loaders and random generators.

    run = cairn.torch.attach(model, optimizer, scheduler=scheduler)
    for epoch in run.epochs(10):
        for batch in run.batches(loader):        # its next item is the boundary: scheduler, scaler and averages have moved too
            loss = model(batch).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
    run.finalize()

`load` reads a checkpoint's tensors in any process. `dcp` is for programs that use torch.distributed.checkpoint, `checkpoint` for those that know
the calls of SageMaker's model-parallel library. Started without ``srun --checkpoint`` the loop runs as if Cairn were not there.
"""
import importlib

import torch

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
    raise ImportError(f"cairn.torch needs PyTorch 2.9 or later, and this is {torch.__version__}")

from cairn.torch.load import load
from cairn.torch.optim_state import optim_state_dict, optim_state_dict_to_load
from cairn.torch.run import Run, attach
from cairn.torch.sampler import ElasticSampler

__all__ = ["ElasticSampler", "Run", "attach", "checkpoint", "dcp", "load", "optim_state_dict", "optim_state_dict_to_load"]


def __getattr__(name):
    """PyTorch's checkpoint package takes a while to import."""
    if name in ("checkpoint", "dcp"):
        return importlib.import_module(f"cairn.torch.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
