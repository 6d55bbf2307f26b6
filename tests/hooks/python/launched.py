"""A rank that a launcher has started, not srun: trains a small sharded model, and leaves without a word after step 3 where the first argument is "leave".

Rank 0 prints "resumed STEP", "loss STEP VALUE" for each step, and "done"."""
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

import cairn.torch

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(3)
model = fully_shard(nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
run = cairn.torch.attach(model, optimizer)
said = print if dist.get_rank() == 0 else lambda *_, **__: None
said("resumed", run.steps_done, flush=True)
while run.steps_done < 6:
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(100 * run.steps_done + dist.get_rank()))
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total = loss.detach().clone()
    dist.all_reduce(total)
    said("loss", run.steps_done + 1, total.item().hex(), flush=True)
    if sys.argv[1:] == ["leave"] and run.steps_done + 1 == 3:
        run.save()
    run.step()
    if sys.argv[1:] == ["leave"] and run.steps_done == 3:
        run.wait()
        break
else:
    run.finalize()
    said("done", flush=True)
dist.destroy_process_group()
