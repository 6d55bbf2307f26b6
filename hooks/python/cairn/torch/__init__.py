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

`load` reads a checkpoint's tensors in any process. Started without ``srun --checkpoint`` the loop runs as if Cairn were not there.
"""
from cairn.torch.load import load
from cairn.torch.run import Run, attach
from cairn.torch.sampler import ElasticSampler

__all__ = ["ElasticSampler", "Run", "attach", "load"]
