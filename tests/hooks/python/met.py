"""One of two ranks that nobody has brought together, in a process group that has no collectives on tensors of the CPU. Rank 0 alone has Cairn's variables.

    python met.py FOLDER    with RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; FOLDER has the command `cairn`
"""
import datetime
import os
import sys
import tempfile

import torch.distributed as dist

import cairn
from cairn.torch import meeting

dist.init_process_group("cuda:gloo")
rank = dist.get_rank()
store = dist.distributed_c10d._get_default_store()
name = "CAIRN_LIBRARY"
library = os.environ.pop(name)  # rank 0 tells the others of it


def told(**variables):
    """Whether there is a token after a meeting to which rank 0 has come with these variables; or what was raised."""
    if rank == 0:
        os.environ.update(variables)
    try:
        meeting.meet()
    except cairn.Error as error:
        return str(error)
    return "SLURM_CAIRN_TOKEN" in os.environ


assert told() is False
assert told(CAIRN_CHECKPOINT="off") is False
if rank == 1:  # one that comes alone, and was asked for nothing, goes on
    meeting._OF_OTHERS, bound = datetime.timedelta(milliseconds=50), meeting._OF_OTHERS
    assert told() is False
    meeting._OF_OTHERS = bound
    store.set("alone", "")
else:
    store.wait(["alone"])
    assert told() is False
with tempfile.TemporaryDirectory() as folder:
    nowhere = {"CAIRN_CHECKPOINT": "10m", "CAIRN_DIR": f"{folder}/run", "PATH": folder}
    said = told(CAIRN_REQUIRE="yes", **nowhere)
    assert said == "the host process of 2 ranks does not start: there is no command `cairn` in PATH", said
    assert told(CAIRN_REQUIRE="no") is False
    if rank == 0:
        os.environ[name] = library
    os.environ["PATH"] = sys.argv[1]
    assert told(XDG_STATE_HOME=folder) is True and os.environ[name] == library
    assert os.environ["SLURM_CAIRN_CHECKPOINT"] == "10m"
    assert os.environ["SLURM_CAIRN_LOCAL_WORLD_SIZE"] == "2"
    store.set(f"seen/{rank}", f"{os.environ['SLURM_CAIRN_TOKEN']} {os.environ['SLURM_CAIRN_LOCAL_RANK']}")
    (token, first), (other, second) = (store.get(f"seen/{one}").decode().split() for one in (0, 1))
    assert token == other and sorted((first, second)) == ["0", "1"]
    assert not store.check(["cairn/6"])
    assert told() is True  # another loop of the program meets again
    store.set(f"done/{rank}", "")
    store.wait(["done/0", "done/1"])
dist.destroy_process_group()
