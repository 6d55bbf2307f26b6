"""A rank in plain Python: its rows of one array of doubles count the steps. Prints "resumed STEP", "run ID", "notes TEXT …", "own RANK|none", "sum HEX" and
"done"."""
import argparse
import ctypes
import os
import struct

import cairn

ROWS, COLUMNS = 12, 5

parser = argparse.ArgumentParser()
parser.add_argument("--save-at", type=int, default=-1)
parser.add_argument("--stop-at", type=int, default=-1)
arguments = parser.parse_args()
rank, size = int(os.environ.get("SLURM_PROCID", 0)), int(os.environ.get("SLURM_NTASKS", 1))
first, last = ROWS * rank // size, ROWS * (rank + 1) // size
count = (last - first) * COLUMNS
memory = [(ctypes.c_double * max(count, 1))(), (ctypes.c_double * max(count, 1))()]  # two buffers that take turns
for i in range(count):
    memory[0][i] = first * COLUMNS + i

session = cairn.Session()
now = 0
item = session.add_array("u", "F64", (ROWS, COLUMNS),
                         [cairn.Piece((first, 0), (last - first, COLUMNS), ctypes.addressof(memory[0]))] if count else [])
notes = session.add_blob("notes", 100, cairn.Policy.MERGE)
own = session.add_blob("own", 8, cairn.Policy.RESEED)


def collect():
    if count:
        session.update(item, 0, ctypes.addressof(memory[now]))
    notes.value = f"{rank}of{size}".encode()
    own.value = struct.pack("q", rank)


session.on_copy(collect)
report = session.restore()
print("resumed", report.step, flush=True)
print("run", report.run_id, flush=True)
print("notes", *(note.decode() for note in session.saved_blobs("notes")), flush=True)
print("own", struct.unpack("q", own.value)[0] if own.value else "none", flush=True)
for step in range(report.step, 9):
    for i in range(count):
        memory[1 - now][i] = memory[now][i] * 1.5 + step
    now = 1 - now
    if step + 1 == arguments.save_at and rank == 0:
        session.save(metrics={"loss": 0.5})
    session.step(step + 1)
    if step + 1 == arguments.stop_at:
        session.wait()
        os._exit(0)
print("sum", sum(memory[now][i] for i in range(count)).hex(), flush=True)
session.finalize()
print("done", flush=True)
