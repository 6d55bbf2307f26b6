"""A process that trains a small model with dropout and an average of its weights. With the argument "forgetful" it has attached neither the average, by
which it trains, nor the optimizer."""
import copy
import sys

import torch
from torch import nn

import cairn.torch

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.BatchNorm1d(8), nn.Linear(8, 1))
model.register_buffer("scale", torch.ones(1), persistent=False)
average = copy.deepcopy(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
scalers = [torch.amp.GradScaler("cpu", enabled=False), torch.amp.GradScaler("cpu")]  # the first does nothing
if sys.argv[1:] == ["forgetful"]:
    run = cairn.torch.attach(model)
else:
    run = cairn.torch.attach({"model": model, "average": average}, optimizer, scheduler=scheduler, scaler=scalers[1])
while run.steps_done < 1000:
    x = torch.randn(6, 4)
    loss = (model(x) * model.scale - x.sum(1, keepdim=True)).square().mean() + (average(x).detach() - model(x)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    scheduler.step()
    with torch.no_grad():
        for mean, weight in zip(average.parameters(), model.parameters()):
            mean.lerp_(weight, 0.1)
    run.step()
run.finalize()
