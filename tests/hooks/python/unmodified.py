"""A training program that knows nothing of Cairn. It trains on all of its data until its optimizer has made `steps` steps, and prints "loss STEP VALUE"
and in the end "weights HASH". The model has dropout and batch norm, the learning rate a schedule, the gradients a scale: whatever is not restored
changes the weights.
"""
import hashlib
import os
import sys

import torch
from torch import nn

steps, port = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE=str(size))
torch.distributed.init_process_group("gloo")
torch.manual_seed(5 + rank)
generator = torch.Generator().manual_seed(rank)
x, y = torch.randn(16, 6, generator=generator), torch.randn(16, 2, generator=generator)
model = nn.Sequential(nn.Linear(6, 20), nn.BatchNorm1d(20), nn.Tanh(), nn.Dropout(0.2), nn.Linear(20, 2))
model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=9),
                                                              torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)], [9])
scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=7)
done = 0
while done < steps:
    loss = (model(x) - y).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    scheduler.step()
    done = int(optimizer.state[optimizer.param_groups[0]["params"][0]]["step"])
    print("loss", done, loss.item().hex(), flush=True)
weights = b"".join(bytes(tensor.numpy()) for tensor in model.state_dict().values())
print("weights", hashlib.sha256(weights).hexdigest(), flush=True)
