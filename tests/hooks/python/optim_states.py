"""A rank that turns optimizers' states into dicts by parameter name and back, and compares with what PyTorch makes of the same states.

    python optim_states.py save|load FOLDER     with RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
"""
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as torch_dcp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullOptimStateDictConfig, FullStateDictConfig, ShardedOptimStateDictConfig, ShardedStateDictConfig
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy, StateDictType, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.optim.named_optimizer import _NamedOptimizer

from cairn.torch import optim_state_dict, optim_state_dict_to_load
from cairn.torch.dcp import StorageReader, StorageWriter
from cairn.torch.model import parts_of
from cairn.torch.optimizer import State
from dcp_ranks import expect_equal

STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2")
NAMES = ["0.weight", "0.bias", "2.weight"]


class KeyedOptimizer(torch.optim.AdamW):
    """As torchrec's: it calls its parameters by keys of the user's, sorted in its groups, and loads in place into the state that it has."""

    def __init__(self, params, **options):
        super().__init__(params.values(), **options)
        self.params = params

    def state_dict(self):
        keys = {parameter: key for key, parameter in self.params.items()}
        return {"state": {keys[parameter]: state for parameter, state in self.state.items()},
                "param_groups": [{**group, "params": sorted(keys[p] for p in group["params"])} for group in self.param_groups]}

    def load_state_dict(self, state_dict):
        state, (group,), (own,) = state_dict["state"], state_dict["param_groups"], self.param_groups
        assert sorted(group["params"]) == sorted(self.params)
        own.update({key: value for key, value in group.items() if key != "params"})
        for key, parameter in self.params.items():
            assert state.get(key, {}).keys() == self.state[parameter].keys()
            for name, value in state.get(key, {}).items():
                self.state[parameter][name].detach().copy_(value)


def net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3, bias=False))  # odd sizes: a rank's range begins and ends inside of rows


def wrapped(way, original=True):
    model = net()
    if way == "fsdp2":
        fully_shard(model[0])
        return fully_shard(model)
    if way == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    if way == "plain":
        return model
    if way == "in one":
        return FSDP(model, device_id=torch.device("cpu"), use_orig_params=True)
    mesh = init_device_mesh("cpu", (1, dist.get_world_size())) if "HYBRID" in way else None
    made = FSDP(model, sharding_strategy=ShardingStrategy[way], use_orig_params=original, device_id=torch.device("cpu"), device_mesh=mesh,
                auto_wrap_policy=lambda module, recurse, nonwrapped_numel: recurse or module is model[0])
    FSDP.set_state_dict_type(made, StateDictType.FULL_STATE_DICT)
    return made


def adam(model, rate=0.25):
    first, *others = model.parameters()
    return torch.optim.AdamW([{"params": [first], "lr": 2 * rate}, {"params": others}] if others else [first], lr=rate)


def trained(model, optimizer):
    for _ in range(2):
        model(torch.arange(20.).view(4, 5)).square().sum().backward()
        optimizer.step()
        model.zero_grad()
    return optimizer


def full(model, rank0_only=False, offload_to_cpu=False):
    """Of states in CPU memory that it "offloads", PyTorch's function gives all of a parameter's keys the same memory: offload_to_cpu is not for that."""
    config = FullOptimStateDictConfig(rank0_only=rank0_only, offload_to_cpu=offload_to_cpu)
    return FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(), config)


def sharded(model):
    return FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT, ShardedStateDictConfig(), ShardedOptimStateDictConfig())


def assembled(state):
    """The same with whole tensors, on every rank."""
    out = {}
    for name, of_one in gathered(state):
        for key, value in of_one:
            kind, size, pieces = value[0]
            if kind == "plain":
                out.setdefault(name, {})[key] = size
                continue
            whole = torch.full(size, float("nan"))
            for offset, box in (piece for _, _, of_rank in value for piece in of_rank):
                whole[tuple(slice(first, first + count) for first, count in zip(offset, box.shape))] = box
            out.setdefault(name, {})[key] = whole
    return out


def gathered(state):
    told = [None] * dist.get_world_size()
    dist.all_gather_object(told, {name: {key: told_of(value) for key, value in of_one.items()} for name, of_one in state.items()})
    for name in sorted({name for of_rank in told for name in of_rank}):
        keys = sorted({key for of_rank in told for key in of_rank.get(name, ())})
        yield name, [(key, [of_rank[name][key] for of_rank in told if name in of_rank]) for key in keys]


def told_of(value):
    if hasattr(value, "local_shards"):
        return "boxes", value.size(), [(shard.metadata.shard_offsets, shard.tensor.clone()) for shard in value.local_shards()]
    if hasattr(value, "full_tensor"):
        return "plain", value.full_tensor(), ()
    return "plain", value, ()


def groups(of):
    return {name: {key: value for key, value in group.items() if key != "params"} for group in of for name in group["params"]}


def expect_same(ours, theirs):
    expect_equal(ours["state"], theirs["state"])
    expect_equal(groups(ours["param_groups"]), groups(theirs["param_groups"]))


def save(folder):
    for strategy in STRATEGIES:
        for original in (True, False):
            model = wrapped(strategy, original)
            optimizer = trained(model, adam(model))
            with full(model):
                theirs = FSDP.optim_state_dict(model, optimizer)
                ours = optim_state_dict(model, optimizer)
                assert sorted(theirs["state"]) == sorted(NAMES)
                expect_same(ours, theirs)
                expect_same(optim_state_dict(model, optimizer, optimizer.state_dict()), theirs)
            with full(model, rank0_only=True, offload_to_cpu=True):
                alone = optim_state_dict(model, optimizer)
                assert sorted(alone["state"]) == (sorted(NAMES) if dist.get_rank() == 0 else [])
                fresh = adam(model, rate=1.)
                optim_state_dict_to_load(model, fresh, alone, load_directly=True)
                expect_equal(fresh.state_dict(), optimizer.state_dict())
            with sharded(model):
                in_boxes = optim_state_dict(model, optimizer)
                expect_equal(assembled(in_boxes["state"]), theirs["state"])
                pytorchs = FSDP.optim_state_dict(model, optimizer)
            for state in (theirs, in_boxes, pytorchs):  # whole, as this model is cut, as PyTorch cuts it
                fresh = adam(model, rate=1.)
                raw = optim_state_dict_to_load(model, fresh, state)
                assert not fresh.state
                fresh.load_state_dict(raw)
                expect_equal(fresh.state_dict(), optimizer.state_dict())
            torch_dcp.save({"optim": in_boxes}, storage_writer=StorageWriter(folder / f"{strategy}-{original}"))
            if dist.get_rank() == 0:
                torch.save(theirs, folder / f"{strategy}-{original}.pt")

    into_other_wrappers()
    of_a_group()
    partitions()
    expect_made_where_no_rank_has_any()
    for make in (named, keyed):
        model = wrapped("FULL_SHARD")
        optimizer, names = make(model)
        trained(model, optimizer)
        with full(model):
            state = optim_state_dict(model, optimizer, optimizer.state_dict())
        expect_equal(state["state"], optim_state_dict(model, optimizer)["state"])
        assert sorted(state["state"]) == sorted(NAMES)
        fresh, _ = make(model)
        raw = optim_state_dict_to_load(model, fresh, state, is_named_optimizer=True, load_directly=True)
        assert raw["state"].keys() <= set(names) and sorted(raw["param_groups"][0]["params"]) == sorted(names)
        expect_equal(fresh.state_dict(), optimizer.state_dict())


def into_other_wrappers():
    """A sharded state as it is, without a file. Rank 0 has nothing of 0.bias, and yet takes part in gathering it."""
    model = wrapped("FULL_SHARD")
    optimizer = trained(model, adam(model))
    with full(model):
        expected = FSDP.optim_state_dict(model, optimizer)
    with sharded(model):
        state = optim_state_dict(model, optimizer)
    for way in ("in one", "NO_SHARD", "ddp", "fsdp2", "plain"):
        model = wrapped(way)
        optimizer = adam(model, rate=1.)
        optim_state_dict_to_load(model, optimizer, state, load_directly=True)
        loaded = optim_state_dict(model, optimizer)
        expect_equal(assembled(loaded["state"]), expected["state"])
        expect_equal(groups(loaded["param_groups"]), groups(expected["param_groups"]))


def of_a_group():
    """With rank0_only the first rank of the group has all, whatever its number elsewhere."""
    last = dist.get_world_size() - 1
    group = dist.new_group([last])
    if dist.get_rank() != last:
        return
    model = FSDP(net(), process_group=group, sharding_strategy=ShardingStrategy.FULL_SHARD, use_orig_params=True, device_id=torch.device("cpu"))
    optimizer = trained(model, adam(model))
    with full(model, rank0_only=True):
        for of in (None, group):
            alone = optim_state_dict(model, optimizer, group=of)
            assert sorted(alone["state"]) == sorted(NAMES)
            fresh = adam(model, rate=1.)
            optim_state_dict_to_load(model, fresh, alone, load_directly=True, group=of)
            expect_equal(fresh.state_dict(), optimizer.state_dict())


def partitions():
    """ZeroRedundancyOptimizer, with parameters in several groups of which rank 0 has none, and one that is not the model's."""
    spare = nn.Parameter(torch.ones(4))
    model = wrapped("ddp")

    def groups_of(rate):
        return [{"params": [one], "lr": rate / (i + 1)} for i, one in enumerate([*model.parameters(), spare])]

    def step(optimizer):
        (model(torch.arange(20.).view(4, 5)).square().sum() + spare.square().sum()).backward()
        optimizer.step()
        model.zero_grad()
        spare.grad = None
        return optimizer

    def zero(rate):
        return ZeroRedundancyOptimizer(groups_of(rate), optimizer_class=torch.optim.AdamW, lr=rate)

    expected = optim_state_dict(model, step(torch.optim.AdamW(groups_of(0.25))))
    assert sorted(expected["state"]) == sorted([*NAMES, "group.3.0"])
    model.load_state_dict(wrapped("ddp").state_dict())
    spare.data.fill_(1)
    optimizer = step(zero(0.25))
    optimizer.consolidate_state_dict(0)
    held = [optimizer.state_dict() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(held)
    states = (optim_state_dict(model, optimizer), optim_state_dict(model, optimizer, held[0]))
    for state in states:
        expect_equal(assembled(state["state"]), expected["state"])
        expect_equal([one["params"] for one in state["param_groups"]], [one["params"] for one in expected["param_groups"]])
        expect_equal([one["lr"] for one in state["param_groups"]], [0.25, 0.125, 0.25 / 3, 0.0625])
    for state in (*states, expected):  # of this rank's partition, and whole
        fresh = zero(1.)
        fresh.load_state_dict(optim_state_dict_to_load(model, fresh, state))
        check(fresh, expected)
    attached = State("optim", zero(0.5), parts_of(model)[1])
    assert attached.values()["groups"][3]["of"] == ["group.3.0"]
    attached.load({"scalars": {}, "absent": [], "groups": [{"of": one["params"], "lr": one["lr"]} for one in expected["param_groups"]]})
    assert [one["lr"] for one in attached.inner.param_groups] == [one["lr"] for one in expected["param_groups"]]


def check(optimizer, expected):
    """What a rank has in its partition of the optimizer."""
    assert [one["lr"] for one in optimizer.optim.param_groups] == [one["lr"] for one in expected["param_groups"]]
    for own, group in zip(optimizer.optim.param_groups, expected["param_groups"]):
        for parameter, (name,) in zip(own["params"], [group["params"]] if own["params"] else []):
            expect_equal(optimizer.optim.state[parameter], expected["state"][name])


def expect_made_where_no_rank_has_any():
    """State is made where there was no step; after one, parameters that it left out have none, on the rank that holds nothing else too."""
    model = wrapped("in one")
    optimizer = adam(model)
    with sharded(model):
        assert sorted(optim_state_dict(model, optimizer)["state"]) == sorted(NAMES) and not optimizer.state
    for name, parameter in model.named_parameters():
        if parameter.numel() and "0.weight" in name:  # rank 1 has none of it
            parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    with sharded(model):
        assert list(optim_state_dict(model, optimizer)["state"]) == ["0.weight"]


def named(model):
    return _NamedOptimizer(dict(model.named_parameters()), torch.optim.AdamW, lr=0.25), [name for name, _ in model.named_parameters()]


def keyed(model):
    params = {f"key.{9 - i}": parameter for i, (_, parameter) in enumerate(model.named_parameters()) if parameter.numel()}
    return KeyedOptimizer(params, lr=0.25), list(params)


def load(folder):
    """Under another strategy, and under other wrappers, on another number of ranks."""
    for i, strategy in enumerate(STRATEGIES):
        for original in (True, False):
            expected = torch.load(folder / f"{strategy}-{original}.pt", weights_only=True)
            model = wrapped(STRATEGIES[i - 1], original)
            optimizer = adam(model, rate=1.)
            with sharded(model):
                state = {"optim": optim_state_dict(model, optimizer)}
            assert not optimizer.state
            torch_dcp.load(state, storage_reader=StorageReader(folder / f"{strategy}-{original}"))
            optim_state_dict_to_load(model, optimizer, state["optim"], load_directly=True)
            with full(model):
                expect_same(FSDP.optim_state_dict(model, optimizer), expected)
    for way in ("plain", "ddp", "fsdp2"):
        model = wrapped(way)
        optimizer = adam(model, rate=1.)
        state = {"optim": optim_state_dict(model, optimizer)}
        torch_dcp.load(state, storage_reader=StorageReader(folder / "FULL_SHARD-True"))
        for of_this in (state["optim"], expected := torch.load(folder / "FULL_SHARD-True.pt", weights_only=True)):  # as it is sharded, and whole
            optim_state_dict_to_load(model, optimizer, of_this, load_directly=True)
            loaded = optim_state_dict(model, optimizer)
            expect_equal(assembled(loaded["state"]), expected["state"])
            expect_equal(groups(loaded["param_groups"]), groups(expected["param_groups"]))
    model = wrapped("ddp")
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=0.25)
    state = {"optim": optim_state_dict(model, optimizer)}
    held = [None] * dist.get_world_size()
    dist.all_gather_object(held, sorted(state["optim"]["state"]))
    assert sorted(sum(held, [])) == sorted(NAMES)  # each with one rank
    torch_dcp.load(state, storage_reader=StorageReader(folder / "FULL_SHARD-True"))
    optim_state_dict_to_load(model, optimizer, state["optim"], load_directly=True)
    expect_equal(assembled(optim_state_dict(model, optimizer)["state"]), expected["state"])


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    {"save": save, "load": load}[sys.argv[1]](pathlib.Path(sys.argv[2]))
    dist.barrier()
    dist.destroy_process_group()
