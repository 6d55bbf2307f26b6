"""Ranks that nobody brings together: torchrun, mpirun or mp.spawn has started them, and CAIRN_CHECKPOINT asks for saves, but there is no srun --checkpoint.

  1. Rank 0 starts the host process (`cairn host --print-env`), which serves until rank 0 ends: its stdin is a pipe that rank 0 holds.
  2. What it prints (where it listens, a token, the settings) rank 0 broadcasts. (The store of torchrun's agent would still have that of an earlier life.)
  3. All put it into their environment, where the session finds it as it would find what srun has given.

A restart by torchrun itself (--max-restarts) is a later life, as one by Slurm is.
"""
import os
import shutil
import subprocess
import sys
from typing import Any, Dict, List, Optional

import torch.distributed as dist

from cairn.errors import Error

_host: Optional[subprocess.Popen] = None  # of rank 0: it ends with this process


def meet() -> None:
    """Before the first session is opened; all ranks, or those that ask for saves would wait for rank 0. Raises `cairn.Error` where CAIRN_REQUIRE is set
    and there is no host process; else that is said, and the ranks run unprotected."""
    if "SLURM_CAIRN_TOKEN" in os.environ or os.environ.get("CAIRN_CHECKPOINT", "off") in ("", "off"):
        return
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return
    told: List[Any] = [None]
    if dist.get_rank() == 0:
        try:
            told = [_start_host()]
        except Exception as error:  # the others wait for a word in any case
            told = [str(error)]
    dist.broadcast_object_list(told)
    if isinstance(told[0], str):
        text = f"the host process of {dist.get_world_size()} ranks does not start: {told[0]}"
        if os.environ.get("CAIRN_REQUIRE", "no") == "yes":
            raise Error(text)
        if dist.get_rank() == 0:
            print(f"cairn: NOT PROTECTED: {text}", file=sys.stderr, flush=True)
        return
    os.environ.update(told[0])


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
