"""A rank whose data come from workers that are started in each of Python's ways. Prints "resumed STEP", and "step NUMBER" for each step; with an argument, makes
so many steps, and prints "done"."""
import os
import sys

import torch

import cairn.torch


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 30

    def __getitem__(self, i):
        return torch.tensor([float(i), 1.0])


def main():
    torch.set_num_threads(1)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    run = cairn.torch.attach(model, optimizer)
    print("resumed", run.steps_done, flush=True)
    sources = [iter(torch.utils.data.DataLoader(Data(), sampler=range(1 << 30), batch_size=2, num_workers=1, multiprocessing_context=way))
               for way in ("fork", "spawn", "forkserver")]
    last = run.steps_done + int(sys.argv[1]) if sys.argv[1:] else 1 << 30
    while run.steps_done < last:
        sum(model(next(source)).mean() for source in sources).backward()
        optimizer.step()
        run.step()
        print("step", run.steps_done, flush=True)
    sources.clear()  # ends the workers: one of the fork server would keep that, and be kept by it, for ever
    print("done", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
