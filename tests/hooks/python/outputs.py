"""A rank that appends a line a step to a file of its own, rank 0 to loss.csv besides. Prints "lengths BYTES …" as the restore left them, "done", or
"refused WHY"."""
import argparse
import os
import pathlib

import cairn

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--save-at", type=int, default=-1)
parser.add_argument("--stop-at", type=int, default=-1)
parser.add_argument("--all", action="store_true", help="every rank adds loss.csv")
arguments = parser.parse_args()
rank = int(os.environ["SLURM_PROCID"])
paths = [arguments.folder / f"rank{rank}.log"] + ([arguments.folder / "loss.csv"] if rank == 0 or arguments.all else [])
session = cairn.Session()
for path in paths:
    session.add_output(path)
try:
    report = session.restore()
except cairn.Error as refusal:
    print("refused", refusal, flush=True)
    os._exit(0)
print("lengths", *(path.stat().st_size if path.exists() else -1 for path in paths), flush=True)
files = [open(path, "a" if report.restored else "w") for path in paths]
for step in range(report.step, 9):
    for file in files:
        print("step", step, file=file, flush=True)
    if step + 1 == arguments.save_at:
        session.save()
    session.step(step + 1)
    if step + 1 == arguments.stop_at:
        session.wait()
        for file in files:
            print(f"step {step + 1}\nstep {step + 2}", file=file, flush=True)  # which are lost
        os._exit(0)
session.finalize()
print("done", flush=True)
