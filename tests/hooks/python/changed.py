"""A rank whose program may differ from the one that saved: it holds the arrays that it is told to, each full of its own number, and loads as it is
told to. Prints "read BYTES" (by cairn_restore, as the kernel counted), "report" with what a report has as JSON, "item NAME VALUE" for each array
(the one number that all its elements have, else "mixed"), and "done"; or "mismatch" and the error as JSON."""
import argparse
import ctypes
import dataclasses
import json

import cairn


def bytes_read():
    with open("/proc/self/io") as io:
        return int(io.readline().split()[1])


parser = argparse.ArgumentParser()
parser.add_argument("--items", nargs="*", default=[], help="NAME=VALUE:ELEMENTS")
parser.add_argument("--load", type=json.loads, default={}, help="arguments of Session.restore")
parser.add_argument("--save", action="store_true", help="saves after one step, and ends without a word")
arguments = parser.parse_args()

session = cairn.Session()
arrays = {}
for item in arguments.items:
    name, _, rest = item.partition("=")
    value, count = map(int, rest.split(":"))
    arrays[name] = (ctypes.c_double * count)(*[value] * count)
    session.add_array(name, "F64", (count,), [cairn.Piece((0,), (count,), ctypes.addressof(arrays[name]))])
before = bytes_read()
try:
    report = session.restore(**arguments.load)
except cairn.Mismatch as error:
    print("mismatch", json.dumps(str(error)), flush=True)
    raise SystemExit(0)
print("read", bytes_read() - before)
print("report", json.dumps(dataclasses.asdict(report)))
for name, array in arrays.items():
    values = set(array)
    print("item", name, values.pop() if len(values) == 1 else "mixed", flush=True)
if arguments.save:
    session.save()
    session.step(report.step + 1)
    session.wait()
    print("done", flush=True)
