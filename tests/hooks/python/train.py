"""A rank that trains a small model in one of the ways that PyTorch's users know, attached to Cairn in one line.

Prints "resumed STEP", "missing NAME …" (of the report), then "loss STEP VALUE" for each step (the mean over ranks, exact), then "done"; with
--expect, before all that, "expected STEP VALUE" for each step of a training of the same model that Cairn knows nothing of. The data of a step depends on the step and
the sample alone, and the global batch is the same for every number of ranks: losses may differ between numbers of ranks by rounding only.
"""
import argparse
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import cairn.torch

SAMPLES = 12  # of the global batch


class Net(nn.Module):
    def __init__(self, change=None):
        super().__init__()
        self.middle = "inner" if change == "renamed" else "hidden"
        self.embed = nn.Linear(8, 24)
        self.norm = nn.LayerNorm(24)
        setattr(self, self.middle, nn.Linear(24, 36, bias=False))
        self.out = nn.Linear(36, 5)
        self.scale = nn.Parameter(torch.ones(1))
        self.shift = nn.Parameter(torch.zeros(5)) if change == "grown" else 0
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        return self.out(F.gelu(getattr(self, self.middle)(self.norm(torch.tanh(self.embed(x)))))) * self.scale + self.shift


def wrap(kind, net, rank, size):
    if kind == "plain":
        return net
    if kind in ("ddp", "zero"):
        return nn.parallel.DistributedDataParallel(net)
    if kind.startswith("fsdp1"):
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy
        strategy = {"fsdp1": "FULL_SHARD", "fsdp1-grad": "SHARD_GRAD_OP", "fsdp1-none": "NO_SHARD", "fsdp1-flat": "FULL_SHARD"}[kind]
        return FSDP(net, sharding_strategy=ShardingStrategy[strategy], use_orig_params=kind != "fsdp1-flat", device_id=torch.device("cpu"),
                    auto_wrap_policy=lambda module, recurse, nonwrapped_numel: recurse or isinstance(module, nn.Linear))
    if kind == "fsdp2":
        from torch.distributed.fsdp import fully_shard
        for layer in (net.embed, net.hidden, net.out):
            fully_shard(layer)
        return fully_shard(net)
    if kind == "tp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        return parallelize_module(net, init_device_mesh("cpu", (size,)), {"hidden": ColwiseParallel(), "out": RowwiseParallel()})
    if kind == "2d":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
        parallelize_module(net, mesh["tp"], {"hidden": ColwiseParallel(), "out": RowwiseParallel()})
        return fully_shard(net, mesh=mesh["dp"])
    raise SystemExit(f"unknown kind {kind}")


def optimizer_of(name, kind, model):
    parameters = [p for p in model.parameters() if p.requires_grad]
    options = {"sgd": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "dampening": 0.1}), "adam": (torch.optim.Adam, {"lr": 0.01}),
               "adamw": (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
               "rmsprop": (torch.optim.RMSprop, {"lr": 0.005, "momentum": 0.5, "centered": True}), "adagrad": (torch.optim.Adagrad, {"lr": 0.05})}
    if name == "odd":
        return Odd(parameters)
    made, settings = options[name]
    if kind == "zero":
        from torch.distributed.optim import ZeroRedundancyOptimizer
        return ZeroRedundancyOptimizer(parameters, optimizer_class=made, **settings)
    half = len(parameters) // 2
    return made([{"params": parameters[:half]}, {"params": parameters[half:], "lr": settings["lr"] / 2}], **settings)


class Odd(torch.optim.Optimizer):
    """State of all sorts: a number, a list of numbers, a 0-dim tensor and a tensor like the parameter."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.02})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state |= {"count": 0, "recent": [1.0, 1.0], "power": torch.tensor(1.0), "mean": torch.zeros_like(p)}
                state["count"] += 1
                state["recent"] = [state["recent"][1], 1.0 + 1.0 / state["count"]]
                state["power"] *= 0.9
                state["mean"].mul_(0.8).add_(p.grad)
                p.sub_(state["mean"], alpha=group["lr"] * state["recent"][0] * (1 - float(state["power"])))


def data(step, first, count):
    generator = torch.Generator().manual_seed(1000 + step)
    x = torch.randn(SAMPLES, 8, generator=generator)
    y = torch.randint(0, 5, (SAMPLES,), generator=generator)
    return x[first:first + count], y[first:first + count]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("--optimizer", default="adamw")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--save-at", type=int, default=-1)
    parser.add_argument("--stop-at", type=int, default=-1, help="leaves without a word after this step, when its save is durable")
    parser.add_argument("--expect", action="store_true", help="trains another such model first, without Cairn")
    parser.add_argument("--losses", help="rank 0 appends each step's number to this file, and a word after the last save")
    parser.add_argument("--change", choices=("renamed", "grown"), help="of the model, since it was saved")
    parser.add_argument("--port", default="29511")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rank, size = int(os.environ.get("SLURM_PROCID", 0)), int(os.environ.get("SLURM_NTASKS", 1))
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": arguments.port, "RANK": str(rank), "WORLD_SIZE": str(size)}
    if arguments.kind != "plain":
        dist.init_process_group("gloo")

    def made():
        torch.manual_seed(3)
        model = wrap(arguments.kind, Net(arguments.change), rank, size)
        optimizer = optimizer_of(arguments.optimizer, arguments.kind, model)
        return model, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)

    split = arguments.kind not in ("plain", "tp")  # over the ranks, or the same on all
    ways = size // 2 if arguments.kind == "2d" else size if split else 1
    part = rank // 2 if arguments.kind == "2d" else rank if split else 0

    def train(step, model, optimizer, scheduler):
        x, y = data(step, SAMPLES // ways * part, SAMPLES // ways)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        total = loss.detach().clone()
        if size > 1:
            dist.all_reduce(total)
            total /= size
        return total.item().hex()

    if arguments.expect:
        other = made()
        for step in range(arguments.steps):
            print("expected", step + 1, train(step, *other), flush=True)

    model, optimizer, scheduler = made()
    changes = {"renamed": {"rename": {"hidden.*": "inner.*"}}, "grown": {"match": "allow-missing"}}
    run = cairn.torch.attach(model, optimizer, scheduler=scheduler, outputs=[arguments.losses] if arguments.losses else [], **changes.get(arguments.change, {}))
    table = open(arguments.losses, "a" if run.restored else "w", buffering=1) if arguments.losses and rank == 0 else None
    print("resumed", run.steps_done, flush=True)
    print("missing", *run.report.missing, flush=True)
    while run.steps_done < arguments.steps:
        print("loss", run.steps_done + 1, train(run.steps_done, model, optimizer, scheduler), flush=True)
        if table:
            print(run.steps_done + 1, file=table)
        if run.steps_done + 1 == arguments.save_at:
            run.save()
        run.step()
        if run.steps_done == arguments.stop_at:
            run.wait()
            if table:
                print("lost", file=table)
            os._exit(0)
    run.finalize()
    print("done", flush=True)
    os._exit(0)  # gloo's threads are of no interest any more


if __name__ == "__main__":
    sys.exit(main())
