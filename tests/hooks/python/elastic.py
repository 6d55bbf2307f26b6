"""A rank that goes through 60 samples twice: prints "step EPOCH NUMBER PIECES SAMPLE …" for each batch.

    elastic.py PORT STOP_AT [LOADER [BATCHES]]

LOADER   elastic: with an ElasticSampler; stateful: torchdata's StatefulDataLoader; plain: one without a place of its own, and in order; split: such a one over the
         ranks
STOP_AT  0: saved before the first batch, in quiet, and left
BATCHES  how many of an epoch are trained on; the loop is left by `break` at the next one
"""
import os
import sys

import torch

import cairn.torch

port, stop_at = sys.argv[1], int(sys.argv[2])
rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": str(rank), "WORLD_SIZE": str(size)}
torch.distributed.init_process_group("gloo")
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
kind = sys.argv[3] if len(sys.argv) > 3 else "elastic"
batches = int(sys.argv[4]) if len(sys.argv) > 4 else 99
if kind == "stateful":
    from torchdata.stateful_dataloader import StatefulDataLoader
    loader = StatefulDataLoader(torch.arange(60), batch_size=4, shuffle=True)
elif kind == "split":
    split = torch.utils.data.DistributedSampler(range(60), shuffle=False)
    loader = torch.utils.data.DataLoader(torch.arange(60), batch_sampler=torch.utils.data.BatchSampler(split, 4, drop_last=False))
elif kind == "plain":
    loader = torch.utils.data.DataLoader(torch.arange(60), batch_size=4)
else:
    loader = torch.utils.data.DataLoader(torch.arange(60), batch_sampler=cairn.torch.ElasticSampler(60, batch_size=4, seed=7))
run = cairn.torch.attach(model, optimizer, loader=loader)
if stop_at == 0:
    with run.quiet():
        run.save()
        run.wait()
    os._exit(0)
for epoch in run.epochs(2):
    for samples in run.batches(loader):
        if run.steps_done == (epoch + 1) * batches:
            break
        print("step", epoch, run.steps_done, run.accumulation_steps, *samples.tolist(), flush=True)
        if run.accumulating:
            continue
        optimizer.step()
        if run.steps_done + 1 == stop_at:
            run.save()
            run.step()
            run.wait()
            os._exit(0)
run.finalize()
os._exit(0)  # gloo's threads are of no interest any more
