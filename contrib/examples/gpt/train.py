"""A GPT that learns to write like Shakespeare, letter by letter. FSDP2 shards it over all ranks; Cairn takes three lines, marked below."""
import argparse
import os
import pathlib
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard

import cairn.torch

CONTEXT, WIDTH, HEADS, LAYERS = 64, 64, 4, 2
BATCH = 6  # of a rank, on four of them


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.letter, self.place = nn.Embedding(letters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters))

    def forward(self, x):
        return self.head(self.blocks(self.letter(x) + self.place.weight[:x.shape[1]]))


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--step-ms", type=int, default=0, help="at least so long, as if the model were larger")
arguments = parser.parse_args()
rank, size = int(os.environ.get("SLURM_PROCID", 0)), int(os.environ.get("SLURM_NTASKS", 1))
dist.init_process_group("gloo", f"tcp://{os.environ.get('MASTER_ADDR', '127.0.0.1')}:{os.environ.get('MASTER_PORT', 29500)}", rank=rank, world_size=size)
torch.manual_seed(1)
torch.set_num_threads(1)

text = pathlib.Path(__file__).with_name("text.txt").read_text()
letters = {letter: i for i, letter in enumerate(sorted(set(text)))}
pieces = torch.tensor([letters[letter] for letter in text]).unfold(0, CONTEXT + 1, CONTEXT)  # each with the letter after it
model = GPT(len(letters))
for block in model.blocks:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)

sampler = cairn.torch.ElasticSampler(len(pieces), BATCH, seed=1)  # 1: one order of the data, and one global batch, on any number of ranks
loader = torch.utils.data.DataLoader(pieces, batch_sampler=sampler)
run = cairn.torch.attach(model, optimizer, scheduler=scheduler, loader=loader)  # 2: restores what there is
if rank == 0:
    print(f"{size} ranks begin after step {run.steps_done}", flush=True)
total = torch.zeros(())
for epoch in run.epochs(arguments.epochs):
    for batch in run.batches(loader):  # 3: from where the run stands; its next item is the place to save
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten()) / run.accumulation_steps
        loss.backward()
        total += loss.detach()
        if run.accumulating:
            continue
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        dist.all_reduce(total)
        if rank == 0:
            print(f"step {run.steps_done + 1} loss {total / size:.9g}", flush=True)
        total.zero_()
        time.sleep(arguments.step_ms / 1000)
run.finalize()
dist.destroy_process_group()
