"""A rank that saves or loads states by torch.distributed.checkpoint into Cairn's directories.

    python dcp_ranks.py save|load FOLDER     with RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT

What a tensor holds follows from its name, so what was loaded on two ranks is compared with what four ranks must have saved.
"""
import concurrent.futures
import pathlib
import sys
import threading

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as torch_dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import cairn.torch
from cairn.torch.dcp import StorageReader, StorageWriter

# shape, dtype, then mesh and placements on four ranks, and on two; None: a plain tensor
WAYS = {"rows": ((10, 3), torch.float32, ((4,), [Shard(0)]), ((2,), [Shard(1)])),
        "columns": ((2, 7), torch.bfloat16, ((4,), [Shard(1)]), None),
        "blocks": ((6, 6), torch.float64, ((2, 2), [Shard(0), Shard(1)]), ((2,), [Shard(0)])),
        "copies": ((5,), torch.float32, ((2, 2), [Replicate(), Shard(0)]), ((2,), [Replicate()])),
        "few": ((2, 4), torch.int64, ((4,), [Shard(0)]), ((2,), [Shard(0)])),  # two of four ranks have nothing
        "plain": ((4, 5), torch.int32, None, ((2,), [Shard(0)])),
        "transposed": ((3, 4), torch.float32, None, None),
        "scalar": ((), torch.float64, None, None)}
VALUES = {"step": 7, "name": "run", "rates": [0.1, 0.25], "deep": {"pair": (1, None), "raw": b"\0x"}}


def whole(name):
    shape, dtype = WAYS[name][:2]
    return (torch.arange(torch.Size(shape).numel()) % 100 + len(name)).reshape(shape).to(dtype)


def placed(name, value, way):
    if way is None:
        return value.t().contiguous().t() if name == "transposed" else value.clone()
    return distribute_tensor(value, init_device_mesh("cpu", way[0]), way[1])


def state(ranks, empty=False):
    way = 2 if ranks == 4 else 3
    return {name: placed(name, torch.zeros_like(whole(name)) if empty else whole(name), WAYS[name][way] if ranks > 1 else None) for name in WAYS}


def check(tensors):
    for name in WAYS:
        value = tensors[name].full_tensor() if hasattr(tensors[name], "full_tensor") else tensors[name]
        assert value.dtype == WAYS[name][1] and torch.equal(value, whole(name)), (name, value)


def trained(flat=False):
    """A sharded module and its optimizer after a step, as all numbers of ranks have it. flat: by FSDP1."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 3, bias=False))
    if flat:
        model[0] = FullyShardedDataParallel(model[0], use_orig_params=True, device_id=torch.device("cpu"))
        model[2] = FullyShardedDataParallel(model[2], use_orig_params=True, device_id=torch.device("cpu"))
    else:
        fully_shard(model[0])
        fully_shard(model)
    optimizer = torch.optim.AdamW([{"params": model[0].parameters(), "lr": 0.5}, {"params": model[2].parameters()}], lr=0.25)
    model(torch.ones(4, 6)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return model, optimizer


def full(tree):
    if isinstance(tree, dict):
        return {key: full(value) for key, value in tree.items()}
    return tree.full_tensor().clone() if hasattr(tree, "full_tensor") else tree.clone() if isinstance(tree, torch.Tensor) else tree


def clear(tree):
    for value in tree.values():
        if isinstance(value, dict):
            clear(value)
        elif isinstance(value, torch.Tensor):
            value.zero_()


def expect_equal(one, other, where=""):
    if isinstance(one, dict):
        assert one.keys() == other.keys(), (where, one.keys() ^ other.keys())
        for key in one:
            expect_equal(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, torch.Tensor):
        assert torch.equal(one, other), where
    else:
        assert one == other, (where, one, other)


class FailingPlanner(torch_dcp.DefaultSavePlanner):
    def resolve_data(self, write_item):
        if dist.get_rank() == 2:
            raise RuntimeError("rank 2 has no memory left")
        return super().resolve_data(write_item)


def refused(call, *words):
    try:
        call()
    except torch_dcp.CheckpointException as error:
        assert all(word in str(error) for word in words), str(error)
    else:
        raise AssertionError(f"not refused: {words}")


def save(folder):
    tensors = state(4)
    torch_dcp.save({"tensors": tensors, **VALUES}, storage_writer=StorageWriter(folder / "run", tag="first"))
    model, optimizer = trained()
    expected = full(dict(zip(("model", "optim"), get_state_dict(model, optimizer))))
    sharded = dict(zip(("model", "optim"), get_state_dict(model, optimizer)))
    saved = torch_dcp.async_save(sharded, storage_writer=StorageWriter(folder / "run", step=20))
    saved.result()
    if dist.get_rank() == 0:
        torch.save(expected, folder / "expected.pt")

    torch_dcp.save(dict(zip(("model", "optim"), get_state_dict(*trained(flat=True)))), storage_writer=StorageWriter(folder / "flat"))

    writer = StorageWriter(folder / "run")
    refused(lambda: torch_dcp.save({"tensors": tensors}, storage_writer=writer, planner=FailingPlanner()), "rank 2 has no memory left")
    mixed = {"plain": torch.zeros(3 + dist.get_rank() % 2)}
    refused(lambda: torch_dcp.save(mixed, storage_writer=writer, planner=AllWrite()), "array \"plain\" is F32 [3] on one rank and F32 [4] on another")
    torch_dcp.save({"tensors": tensors}, storage_writer=writer)  # what failed is in nobody's way

    three_at_once(folder / "three")
    half = dist.new_group([2, 3])
    if dist.get_rank() > 1:
        ours = {"tensor": torch.arange(9.)}
        cairn.torch.checkpoint.async_save(ours, checkpoint_id=folder / "half@3", process_group=half, coordinator_rank=1)
        ours["tensor"].fill_(-1)  # the copy is what is saved
        assert cairn.torch.checkpoint.maybe_finalize_async_calls(blocking=True)



def three_at_once(folder):
    """Saves over groups of their own, which not all ranks begin in the same order."""
    groups = [dist.new_group() for _ in range(3)]
    queued = threading.Event()

    class Watched(StorageWriter):
        def set_up_storage_writer(self, *arguments, **options):
            super().set_up_storage_writer(*arguments, **options)
            queued.set()

    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        saves = []
        for i in (0, 2, 1) if dist.get_rank() == 1 else (0, 1, 2):
            queued.clear()
            saves.append(threads.submit(torch_dcp.save, {"x": torch.tensor(i + 1.)}, storage_writer=Watched(folder, step=i + 1), process_group=groups[i]))
            assert queued.wait(60)
        for one in saves:
            one.result(60)


class AllWrite(torch_dcp.DefaultSavePlanner):
    """Has every rank write what it has, as the same array."""

    def create_global_plan(self, all_plans):
        _, metadata = super().create_global_plan(all_plans[:1])
        return all_plans, metadata


def load(folder):
    tensors = state(2, empty=True)
    everything = {"tensors": tensors, "step": 0, "name": "", "rates": [], "deep": {"pair": (), "raw": b""}}
    torch_dcp.load(everything, storage_reader=StorageReader(f"{folder / 'run'}@first"))
    check(tensors)
    expect_equal({key: everything[key] for key in VALUES}, VALUES)

    torch_dcp.load({"tensors": state(2, empty=True)}, storage_reader=StorageReader(folder / "run"))
    refused(lambda: torch_dcp.load({"tensors": {**tensors, "new": torch.zeros(3)}}, storage_reader=StorageReader(folder / "run")),
            "Missing key in checkpoint state_dict: tensors.new")
    some = {"tensors": {"rows": state(2, empty=True)["rows"], "new": torch.full((3,), 5.)}}
    torch_dcp.load(some, storage_reader=StorageReader(folder / "run"), planner=torch_dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert torch.equal(some["tensors"]["rows"].full_tensor(), whole("rows")) and torch.equal(some["tensors"]["new"], torch.full((3,), 5.))

    model, optimizer = trained()
    for parameter in model.parameters():
        parameter.data.mul_(3)
    model_state, optimizer_state = get_state_dict(model, optimizer)
    sharded = {"model": model_state, "optim": optimizer_state}
    cairn.torch.checkpoint.load(sharded, checkpoint_id=f"{folder / 'run'}@20")
    set_state_dict(model, optimizer, model_state_dict=sharded["model"], optim_state_dict=sharded["optim"])
    expect_equal(full(dict(zip(("model", "optim"), get_state_dict(model, optimizer)))), torch.load(folder / "expected.pt", weights_only=True))
    clear(sharded)
    torch_dcp.load(sharded, storage_reader=StorageReader(folder / "flat"))
    expect_equal(full(sharded), torch.load(folder / "expected.pt", weights_only=True))


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    {"save": save, "load": load}[sys.argv[1]](pathlib.Path(sys.argv[2]))
    dist.barrier()
    dist.destroy_process_group()
