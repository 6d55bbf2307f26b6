"""A rank that goes through 60 samples twice, with an ElasticSampler or (third argument "stateful") torchdata's StatefulDataLoader: prints "step EPOCH NUMBER PIECES SAMPLE …" for each batch."""
import os
import sys

import torch

import cairn.torch

port, stop_at = sys.argv[1], int(sys.argv[2])
rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": str(rank), "WORLD_SIZE": str(size)}
torch.distributed.init_process_group("gloo")
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
if sys.argv[3:] == ["stateful"]:
    from torchdata.stateful_dataloader import StatefulDataLoader
    loader = StatefulDataLoader(torch.arange(60), batch_size=4, shuffle=True)
else:
    loader = torch.utils.data.DataLoader(torch.arange(60), batch_sampler=cairn.torch.ElasticSampler(60, batch_size=4, seed=7))
run = cairn.torch.attach(model, optimizer, loader=loader)
for epoch in run.epochs(2):
    for samples in run.batches(loader):
        print("step", epoch, run.steps_done, run.accumulation_steps, *samples.tolist(), flush=True)
        if run.accumulating:
            continue
        optimizer.step()
        if run.steps_done + 1 == stop_at:
            run.save()
            run.step()
            run.wait()
            os._exit(0)
run.finalize()
os._exit(0)  # gloo's threads are of no interest any more
