"""Saves and loads a state of float arrays, split over ranks by rows, in the ways that PyTorch's users know. A process for each rank, gloo between
them.

Rank 0 reads a way's name a line on stdin and answers "WAY<tab>SECONDS": until the bytes are durable, or loaded, on all ranks. Each save goes to
a folder of its own; the folder before is removed outside the measured time. A load is of what the same library saved first.
"""
import argparse
import os
import pathlib
import shutil
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from safetensors.torch import load_file, save_file
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard


def sync(path):
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def dcp_save(state, folder):
    dcp.save(state, storage_writer=dcp.FileSystemWriter(folder, sync_files=True))


def dcp_async_save(state, folder):
    return dcp.async_save(state, storage_writer=dcp.FileSystemWriter(folder, sync_files=True))


class ByProcess:
    """async_save at its best: what it copies to is used again by the next save, and a process of its own writes. Made at the first save."""

    stager = None

    def __call__(self, state, folder):
        if self.stager is None:
            self.stager = DefaultStager(StagingOptions(use_pinned_memory=False, use_shared_memory=True, use_async_staging=False,
                                                       use_non_blocking_copy=False))
        return dcp.async_save(state, storage_writer=dcp.FileSystemWriter(folder, sync_files=True), async_stager=self.stager,
                              async_checkpointer_type=AsyncCheckpointerType.PROCESS)


def torch_save(state, folder):
    folder.mkdir(exist_ok=True)
    path = folder / f"{dist.get_rank()}.pt"
    torch.save({name: tensor.to_local() for name, tensor in state.items()}, path)
    sync(path)
    sync(folder)


def safetensors(state, folder):
    folder.mkdir(exist_ok=True)
    path = folder / f"{dist.get_rank()}.safetensors"
    save_file({name: tensor.to_local() for name, tensor in state.items()}, path)
    sync(path)
    sync(folder)


def dcp_load(state, folder):
    dcp.load(state, storage_reader=dcp.FileSystemReader(folder))


def torch_load(state, folder):
    fill(state, torch.load(folder / f"{dist.get_rank()}.pt", weights_only=True))


def safetensors_load(state, folder):
    fill(state, load_file(folder / f"{dist.get_rank()}.safetensors"))


def fill(state, loaded):
    for name, tensor in state.items():
        tensor.to_local().copy_(loaded[name])


# A load, and the save whose result it loads.
LOADS = {"dcp.load": (dcp_load, dcp_save), "torch.load": (torch_load, torch_save), "safetensors load": (safetensors_load, safetensors)}

# A way that returns a future is durable when it is done; the name with ", stall" asks for the time until it returned.
by_process = ByProcess()
WAYS = {"dcp.save": dcp_save, "dcp.async_save": dcp_async_save, "dcp.async_save, stall": dcp_async_save, "dcp.async_save by a process": by_process,
        "dcp.async_save by a process, stall": by_process, "torch.save": torch_save, "safetensors": safetensors}


def work(rank, arguments, port):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": str(arguments.ranks)}
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    mesh = init_device_mesh("cpu", (arguments.ranks,))
    rows = arguments.elements // arguments.ranks
    state = {f"model.layers.{i}.weight": DTensor.from_local(torch.full((rows,), float(i)), mesh, [Shard(0)], run_check=False)
             for i in range(arguments.arrays)}
    lines = os.fdopen(0, "r") if rank == 0 else None
    last, saved = None, set()
    while True:
        way = [lines.readline().strip() if rank == 0 else None]
        dist.broadcast_object_list(way)
        if not way[0]:
            break
        load, save = LOADS.get(way[0], (None, WAYS.get(way[0])))
        folder = [pathlib.Path(arguments.folder) / (way[0] if load else f"{time.monotonic_ns()}")]
        dist.broadcast_object_list(folder)
        if load and way[0] not in saved:
            save(state, folder[0])
            saved.add(way[0])
        dist.barrier()
        begin = time.monotonic()
        future = (load or save)(state, folder[0])
        stall = time.monotonic() - begin
        if future:
            future.result()
        dist.barrier()
        if rank == 0:
            print(way[0], stall if way[0].endswith("stall") else time.monotonic() - begin, sep="\t", flush=True)
            if last:
                shutil.rmtree(last)
        last = None if load else folder[0]
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true", help="answers one line and ends: torch and safetensors are there")
    parser.add_argument("--folder")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--arrays", type=int, default=1)
    parser.add_argument("--elements", type=int, default=1024)
    arguments = parser.parse_args()
    if arguments.check:
        print(sys.stdin.readline().strip(), 0, sep="\t")
        return
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    others = mp.get_context("spawn")
    processes = [others.Process(target=work, args=(rank, arguments, port)) for rank in range(1, arguments.ranks)]
    for process in processes:
        process.start()
    work(0, arguments, port)
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
