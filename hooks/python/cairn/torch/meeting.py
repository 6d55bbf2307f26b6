"""Ranks that nobody brings together: torchrun, mpirun or mp.spawn has started them, and CAIRN_CHECKPOINT asks for saves, but there is no srun --checkpoint.

  1. Rank 0 starts the host process (`cairn host --print-env`), which serves until rank 0 ends: its stdin is a pipe that rank 0 holds.
  2. What it prints (where it listens, a token, the settings) rank 0 puts into the store of the process group, or why there is nothing: that saves are not
     asked for, or that the host process does not start. Only rank 0's variables count; mpirun gives those of its shell to no other node.
  3. The others wait for this word. All put it into their environment, where the session finds it as it would find what srun has given.
  4. Each counts itself among the ranks of its node, and says so; who is the last of all takes the word, with the token, out of the store.

The store has no collectives, so it works for any backend, on whatever device, and of an earlier life by torchrun it knows nothing (its keys begin with that
life's number).
A restart by torchrun itself (--max-restarts) is a later life, as one by Slurm is.
"""
import datetime
import json
import os
import shutil
import socket
import subprocess
import sys
from typing import Dict, Optional

import torch.distributed as dist

from cairn.errors import Error

_host: Optional[subprocess.Popen] = None  # of rank 0: it ends with this process
_meetings = 0
_OF_OTHERS = datetime.timedelta(minutes=5)  # how long a rank that was not asked for saves waits for rank 0, which may have been


def meet() -> None:
    """Before a session is opened; all ranks of the default process group, where there is one. Raises `cairn.Error` where CAIRN_REQUIRE is set and there is
    no host process; else that is said, and the ranks run unprotected."""
    global _meetings
    if "SLURM_CAIRN_TOKEN" in os.environ or not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return
    _meetings += 1
    store, rank, key = dist.distributed_c10d._get_default_store(), dist.get_rank(), f"cairn/{_meetings}"
    try:
        if rank == 0:
            store.set(key, json.dumps(_word()))
        elif not _asked():
            store.wait([key], _OF_OTHERS)
        word = json.loads(store.get(key))
        if "environment" in word:
            os.environ.update(word["environment"])
            _count(store, key)
    except RuntimeError as error:  # the store's: the backend has none, or not all ranks come
        word = {"failed": str(error), "required": _required()} if _asked() else {}
    if "failed" in word:
        text = f"the host process of {dist.get_world_size()} ranks does not start: {word['failed']}"
        if word["required"]:
            raise Error(text)
        if rank == 0:
            print(f"cairn: NOT PROTECTED: {text}", file=sys.stderr, flush=True)


def _word() -> Dict:
    """What rank 0 has to tell."""
    if not _asked():
        return {}
    try:
        library = {name: os.environ[name] for name in ("CAIRN_LIBRARY",) if name in os.environ}
        return {"environment": library | _start_host()}
    except Exception as error:  # the others wait for a word in any case
        return {"failed": str(error), "required": _required()}


def _asked() -> bool:
    return os.environ.get("CAIRN_CHECKPOINT", "off") not in ("", "off")


def _required() -> bool:
    return os.environ.get("CAIRN_REQUIRE", "no") not in ("", "no", "off", "0")


def _count(store: dist.Store, key: str) -> None:
    node = f"{key}/{socket.gethostname()}"
    position = store.add(node, 1) - 1
    if store.add(f"{key}/counted", 1) == dist.get_world_size():
        store.delete_key(key)
        store.set(f"{key}/all", "")
    store.wait([f"{key}/all"])
    os.environ.update(SLURM_CAIRN_LOCAL_RANK=str(position), SLURM_CAIRN_LOCAL_WORLD_SIZE=str(store.add(node, 0)))


def _start_host() -> Dict[str, str]:
    global _host
    restarts = sum(int(os.environ.get(name) or 0) for name in ("SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT"))
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    environment |= {"CAIRN_HOST_RESTART": str(restarts), "CAIRN_HOST_NTASKS": str(dist.get_world_size())}
    _host = subprocess.Popen([_command(), "host", "--print-env"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             start_new_session=True)
    given = dict(line.rstrip("\n").split("=", 1) for line in _host.stdout)
    _host.stdout.close()
    if not given:
        raise ChildProcessError(f"{_host.args[0]} has ended with status {_host.wait()}")
    return given


def _command() -> str:
    """`cairn`: of the installation that libcairn.so is from, else the first in PATH."""
    library = os.environ.get("CAIRN_LIBRARY") or os.path.join(os.path.dirname(__file__), "../../../../libcairn.so")  # of <libdir>/cairn/python
    folder = os.path.dirname(os.path.realpath(library))
    for beside in ("../bin/cairn", "../../bin/cairn"):  # of lib, and of lib/x86_64-linux-gnu
        path = os.path.normpath(os.path.join(folder, beside))
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("cairn")
    if found is None:
        raise FileNotFoundError("there is no command `cairn` in PATH")
    return found
