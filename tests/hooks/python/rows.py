"""A rank with a table of numbers, of which it has as many as its rank and four more at first. Prints "capacity N", "rows NUMBER …" after the restore, and
"done"."""
import argparse
import array
import os

import cairn

parser = argparse.ArgumentParser()
parser.add_argument("--capacity", type=int, default=20)
parser.add_argument("--owner", action="store_true")
arguments = parser.parse_args()
rank = int(os.environ["SLURM_PROCID"])
session = cairn.Session()
table = session.add_table("numbers", array.array("q", [0] * arguments.capacity), grow=lambda rows: array.array("q", [0] * (rows + 3)),
                          owner=(lambda row, ranks: int.from_bytes(row, "little") % ranks) if arguments.owner else None)
report = session.restore()
if not report.restored:
    table.count = rank + 4
    for i in range(table.count):
        table.rows[i] = 100 * rank + i
print("capacity", len(table.rows))
print("rows", *table.rows[:table.count], flush=True)
session.save()
session.step(report.step + 1)
session.wait()
print("done", flush=True)
