"""A rank of any number: all of them train a small model on the same data, so that nothing of it depends on how many there are.

The optimizer keeps numbers and lists, and a tracker counts. With the argument "half" the tracker takes back only a part of what it has saved; with "rate" the
rate's scheduler is not attached.
"""
import sys

import torch
import torch.distributed as dist
from torch import nn

import cairn.torch
from train import Odd


class Tracker:
    def __init__(self):
        self.best, self.seen, self.half = 1e9, 0, "half" in sys.argv

    def update(self, loss):
        self.best, self.seen = min(self.best, loss), self.seen + 1

    def state_dict(self):
        return {"best": self.best, "counts": {"seen": self.seen}}

    def load_state_dict(self, state):
        self.best = state["best"]
        if not self.half:
            self.seen = state["counts"]["seen"]


torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(2)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
optimizer, tracker = Odd(model.parameters()), Tracker()
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.5)
run = cairn.torch.attach(model, optimizer, scheduler=None if "rate" in sys.argv else scheduler, extra={"tracker": tracker})
while True:  # the rehearsal ends it
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(run.steps_done))
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    scheduler.step()
    tracker.update(loss.item())
    run.step()
