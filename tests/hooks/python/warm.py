"""A rank that begins to train a small model from weights that it was given, or that leaves some for others.

  warm.py fsdp2 PORT --write FOLDER   model and optimizer, by torch.distributed.checkpoint
  warm.py KIND PORT [--old NAME]      attaches; prints "resumed STEP RESTORED", "weight NAME DIGEST" of each whole tensor as it is then,
                                      "moments COUNT" (of the optimizer's state), trains a step and ends

Seeds differ from rank to rank, so nothing is equal by itself. --old: what the weights call the model's layer "hidden".
"""
import argparse
import hashlib
import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.tensor import DTensor

import cairn.torch
from train import Net, data, wrap


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def digest(tensor):
    return hashlib.sha256(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()


def train_a_step(model, optimizer):
    x, y = data(0, 0, 12)
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind")
    parser.add_argument("port")
    parser.add_argument("--write")
    parser.add_argument("--old")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": arguments.port, "RANK": str(rank), "WORLD_SIZE": str(size)}
    dist.init_process_group("gloo")
    torch.manual_seed(100 + rank)
    model = wrap(arguments.kind, Net(), rank, size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    if arguments.write:
        train_a_step(model, optimizer)
        weights, moments = get_state_dict(model, optimizer)
        dcp.save({"model": weights, "optim": moments}, checkpoint_id=arguments.write)
    else:
        rename = {f"{arguments.old}.*": "hidden.*"} if arguments.old else None
        run = cairn.torch.attach(model, optimizer, rename=rename)
        print("resumed", run.steps_done, run.restored, flush=True)
        print("moments", len(optimizer.state), flush=True)
    for name, tensor in model.state_dict().items():
        print("weight", name.removeprefix("module."), digest(whole(tensor)), flush=True)
    if not arguments.write:
        train_a_step(model, optimizer)
        run.step()
        run.finalize()
    dist.destroy_process_group()


main()
