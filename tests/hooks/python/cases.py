"""A rank that trains many small models at once, each in a way that some program trains: one attached run with a model and an optimizer for each.

Prints "resumed STEP", then "loss STEP CASE VALUE" for each step and case (the mean over ranks, exact), then "done". All ranks train on the same data,
and there are 1, 2 or 4 of them: the mean of equal numbers is exact, so that every loss has the same bits on any number of ranks. But for "dropout", which
draws from each rank's own generator.
"""
import argparse
import contextlib
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, MixedPrecision, ShardingStrategy
from torch.distributed.optim import ZeroRedundancyOptimizer, _NamedOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

import cairn.torch
from train import Odd

STEPS = 6
CPU = torch.device("cpu")


def net():
    return nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 3))


class Tied(nn.Module):
    """The embedding is the output's weight too."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 6)
        self.out = nn.Linear(6, 9, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        return self.out(torch.tanh(self.embed(tokens)))


def data(step, part=0):
    generator = torch.Generator().manual_seed(100 * step + part)
    return torch.randn(8, 6, generator=generator), torch.randn(8, 3, generator=generator)


def simple(model, optimizer):
    def train(step):
        x, y = data(step)
        model.zero_grad()  # _NamedOptimizer's own does not work in all of PyTorch's versions
        loss = F.mse_loss(model(x).float(), y)
        loss.backward()
        optimizer.step()
        return loss

    return train


class Keyed(torch.optim.Optimizer):
    """As torchrec's KeyedOptimizerWrapper: a shell around an optimizer, whose state and groups it shows, and whose hooks its own step does not call."""

    def __init__(self, parameters, optimizer_of):
        self._optimizer = optimizer_of(list(parameters.values()))
        self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = {}, {}
        self.params, self.state, self.param_groups, self.defaults = parameters, self._optimizer.state, self._optimizer.param_groups, {}

    def zero_grad(self, set_to_none=True):
        self._optimizer.zero_grad(set_to_none)

    def step(self, closure=None):
        self._optimizer.step(closure)


class Cases:
    """models, optimizers, extra: what is attached, by name. train: by case, a function of the step that returns a loss (None: another rank's)."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size
        self.models, self.optimizers, self.extra, self.train = {}, {}, {}, {}
        for name in ("lbfgs", "scaler", "accumulation", "gan", "frozen", "tied", "statistics", "groups", "stages", "hybrid",
                     "hybrid_grad", "mixed", "mixed_flat", "odd", "odd_sharded", "named", "keyed", "zero", "average", "dropout", "amsgrad"):
            torch.manual_seed(len(name))
            getattr(self, name)()
        torch.manual_seed(100 + rank)

    def add(self, name, model, optimizer, train=None):
        self.models[name], self.optimizers[name] = model, optimizer
        self.train[name] = train or simple(model, optimizer)

    def lbfgs(self):
        model = net()
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3, history_size=4)

        def train(step):
            x, y = data(0)

            def closure():
                optimizer.zero_grad()
                loss = F.mse_loss(model(x), y)
                loss.backward()
                return loss

            return optimizer.step(closure)

        self.add("lbfgs", model, optimizer, train)

    def scaler(self):
        model = net()
        optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
        scaler = self.extra["scaler"] = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=3)

        def train(step):
            x, y = data(step)
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss * scaler.get_scale()

        self.add("scaler", model, optimizer, train)

    def accumulation(self):
        model = DDP(net())
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

        def train(step):
            optimizer.zero_grad()
            for part in range(4):
                x, y = data(step, part)
                with model.no_sync() if part < 3 else contextlib.nullcontext():
                    loss = F.mse_loss(model(x), y) / 4
                    loss.backward()
            optimizer.step()
            return loss

        self.add("accumulation", model, optimizer, train)

    def gan(self):
        maker, judge = nn.Linear(3, 6), nn.Linear(6, 1)
        makes, judges = torch.optim.Adam(maker.parameters(), lr=0.05), torch.optim.Adam(judge.parameters(), lr=0.02, betas=(0.5, 0.9))
        self.models.update(maker=maker, judge=judge)
        self.optimizers.update(maker=makes, judge=judges)

        def train(step):
            real, noise = data(step)
            judges.zero_grad()
            loss = F.softplus(judge(maker(noise).detach())).mean() + F.softplus(-judge(real)).mean()
            loss.backward()
            judges.step()
            makes.zero_grad()
            fooled = F.softplus(-judge(maker(noise))).mean()
            fooled.backward()
            makes.step()
            return loss + fooled

        self.train["gan"] = train

    def frozen(self):
        model = net()
        for parameter in model[0].parameters():
            parameter.requires_grad_(False)
        self.add("frozen", model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))

    def tied(self):
        model = Tied()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)

        def train(step):
            tokens = torch.arange(9).roll(step)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(tokens), tokens.flip(0))
            loss.backward()
            optimizer.step()
            return loss

        self.add("tied", model, optimizer, train)

    def statistics(self):
        model = DDP(nn.Sequential(nn.Linear(6, 10), nn.BatchNorm1d(10), nn.Linear(10, 3)))
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
        train = simple(model, optimizer)

        def train_and_validate(step):
            train(step)
            x, y = data(step, 1)
            model.eval()
            with torch.no_grad():
                loss = F.mse_loss(model(x), y)
            model.train()
            return loss

        self.add("statistics", model, optimizer, train_and_validate)

    def groups(self):
        model = net()
        optimizer = torch.optim.AdamW(model[0].parameters(), lr=0.05)
        optimizer.add_param_group({"params": model[2].parameters(), "lr": 0.01, "weight_decay": 0.3})
        self.extra["groups"] = torch.optim.lr_scheduler.LambdaLR(optimizer, [lambda step: 0.9 ** step, lambda step: 1.0])
        train = simple(model, optimizer)

        def train_and_schedule(step):
            loss = train(step)
            self.extra["groups"].step()
            return loss

        self.add("groups", model, optimizer, train_and_schedule)

    def stages(self):
        """Four stages, one or more on each rank; one optimizer a rank."""
        own = {f"stage{i}": net() for i in range(4)}
        own = {name: stage for i, (name, stage) in enumerate(own.items()) if i % self.size == self.rank}
        self.models.update(own)
        optimizer = self.optimizers["stages"] = torch.optim.Adam([p for stage in own.values() for p in stage.parameters()], lr=0.03)

        def train(step):
            optimizer.zero_grad()
            losses = []
            for name, stage in own.items():
                x, y = data(step, int(name[-1]))
                losses.append(F.mse_loss(stage(x), y))
                losses[-1].backward()
            optimizer.step()
            for group in optimizer.param_groups:  # no scheduler has it
                group["lr"] *= 0.7
            return torch.stack(losses).double().sum()

        self.train["stages"] = train

    def hybrid(self):
        self.add_hybrid("hybrid", ShardingStrategy.HYBRID_SHARD)

    def hybrid_grad(self):
        self.add_hybrid("hybrid_grad", ShardingStrategy._HYBRID_SHARD_ZERO2)

    def add_hybrid(self, name, strategy):
        mesh = init_device_mesh("cpu", (self.size // 2, 2), mesh_dim_names=("replicate", "shard"))
        model = FSDP(net(), sharding_strategy=strategy, device_mesh=mesh, device_id=CPU, use_orig_params=True)
        self.add(name, model, torch.optim.Adam(model.parameters(), lr=0.02))

    def mixed(self):
        self.add_mixed("mixed", use_orig_params=True)

    def mixed_flat(self):
        self.add_mixed("mixed_flat", use_orig_params=False)

    def add_mixed(self, name, **options):
        precision = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32, buffer_dtype=torch.bfloat16)
        model = FSDP(net(), mixed_precision=precision, device_id=CPU, **options)
        self.add(name, model, torch.optim.AdamW(model.parameters(), lr=0.02))

    def odd(self):
        model = DDP(net())
        self.add("odd", model, Odd(model.parameters()))

    def odd_sharded(self):
        """Of its parameters each rank has some elements, or none."""
        model = FSDP(net(), device_id=CPU, use_orig_params=True)
        self.add("odd_sharded", model, Odd(model.parameters()))

    def named(self):
        model = DDP(net())
        self.add("named", model, _NamedOptimizer(model.named_parameters(), torch.optim.Adam, lr=0.02))

    def keyed(self):
        model = DDP(net())
        self.add("keyed", model, Keyed(dict(model.named_parameters()), lambda parameters: torch.optim.Adam(parameters, lr=0.02)))

    def zero(self):
        """Two groups, of which each rank's partition has some parameters."""
        model = DDP(nn.Sequential(net(), nn.Tanh(), nn.Linear(3, 3)))
        optimizer = ZeroRedundancyOptimizer(model.module[0].parameters(), optimizer_class=torch.optim.AdamW, lr=0.05)
        optimizer.add_param_group({"params": list(model.module[2].parameters()), "lr": 0.01, "weight_decay": 0.3})
        self.extra["zero"] = torch.optim.lr_scheduler.LambdaLR(optimizer, [lambda step: 0.9 ** step, lambda step: 0.5 ** step])
        train = simple(model, optimizer)

        def train_and_schedule(step):
            loss = train(step)
            self.extra["zero"].step()
            return loss

        self.add("zero", model, optimizer, train_and_schedule)

    def average(self):
        """The loss is that of an average of the weights, which counts what went into it."""
        model = net()
        average = self.models["averaged"] = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.6))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        train = simple(model, optimizer)

        def train_and_average(step):
            train(step)
            average.update_parameters(model)
            with torch.no_grad():
                return F.mse_loss(average(data(step)[0]), data(step)[1])

        self.add("average", model, optimizer, train_and_average)

    def dropout(self):
        """Summed by hand: DDP sums a life's first gradients in other buckets than later ones, and so in another order."""
        model = nn.Sequential(nn.Linear(6, 10), nn.Dropout(0.5), nn.Linear(10, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02)

        def train(step):
            x, y = data(step)
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
            optimizer.step()
            return loss

        self.add("dropout", model, optimizer, train)

    def amsgrad(self):
        """Its gradients fall, so that the maximum of their squares stays that of the first steps."""
        model = net()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02, betas=(0.9, 0.5), amsgrad=True)

        def train(step):
            x, y = data(step)
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            (loss * 0.5 ** step).backward()
            optimizer.step()
            return loss

        self.add("amsgrad", model, optimizer, train)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port")
    parser.add_argument("--stop-at", type=int, default=-1, help="leaves without a word after this step, when its save is durable")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": arguments.port, "RANK": str(rank), "WORLD_SIZE": str(size)}
    dist.init_process_group("gloo")
    cases = Cases(rank, size)
    run = cairn.torch.attach(cases.models, cases.optimizers, extra=cases.extra)
    print("resumed", run.steps_done, flush=True)
    while run.steps_done < STEPS:
        step = run.steps_done
        losses = torch.stack([train(step).detach().double() for train in cases.train.values()])
        dist.all_reduce(losses)
        for name, loss in zip(cases.train, losses.tolist()):
            print("loss", step + 1, name, loss if name == "stages" else loss / size, flush=True)
        if step + 1 == arguments.stop_at:
            run.save()
        run.step()
        if step + 1 == arguments.stop_at:
            run.wait()
            os._exit(0)
    print("done", flush=True)
    os._exit(0)  # gloo's threads are of no interest any more


main()
