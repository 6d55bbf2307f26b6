"""Unmodified programs (`srun --checkpoint-attach=torch`): what trains is found, restored and saved, and the program knows nothing of it.

 1. hooks/python/attach/sitecustomize.py calls `watch` when torch has been imported.
 2. Optimizers, schedulers and gradient scalers are noted as the program makes them.
 3. The first module whose forward is called and that holds all parameters of the one optimizer there is: both, the optimizer's schedulers and the
    scaler are attached, and restored before that forward begins.
 4. From then on the first forward of any module after a step of the optimizer is the boundary: schedulers, scaler and averages have moved by then.

The program's own counters and its place in the data cannot be seen: they begin anew, which is said. So do generators up to the first forward. The
end of the program is no end of the run: its last state is saved only where a trigger has come.

What cannot be attached to is said in one line and runs unprotected; only where an earlier life of the job has saved it is stopped, since its work
would silently begin anew. Processes that the program starts later, and those of `multiprocessing`, are left alone.

Nothing of this is in the reach of the program's own copies and files: hooks on a module would be copied and pickled with it.
"""
import multiprocessing
import os
import sys
import weakref
from typing import Any, Dict, List

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from cairn.errors import Error, Mismatch
from cairn.torch.model import unwrapped
from cairn.torch.optimizer import inner_of
from cairn.torch.ranks import rank_and_size
from cairn.torch.run import attach, attached

_made: Dict[type, List[weakref.ref]] = {Optimizer: [], LRScheduler: [], torch.amp.GradScaler: []}


def watch() -> None:
    """Has the program's first training step attached. Once in a process."""
    for kind in _made:
        _note(kind)
    _Search()


def _note(kind: type) -> None:
    """Has objects of `kind` noted as they are made. By __new__: not all of PyTorch's schedulers call their base's __init__."""

    def noting(cls, *_, **__):
        made = object.__new__(cls)
        _made[kind].append(weakref.ref(made))
        return made

    kind.__new__ = noting


def _alive(kind: type) -> List[Any]:
    return [made for made in (reference() for reference in _made[kind]) if made is not None]


def _optimizers() -> List[Optimizer]:
    """Those of the program: without the ones inside of others."""
    all_of_them = [made for made in _alive(Optimizer) if hasattr(made, "param_groups")]
    inner = {id(inner_of(made)) for made in all_of_them if inner_of(made) is not made}
    return [made for made in all_of_them if id(made) not in inner]


class _Search:
    """Looks at each forward until one is that of the model, or the search is given up."""

    def __init__(self):
        self._forward = register_module_forward_pre_hook(self._before_forward)
        self._step = register_optimizer_step_pre_hook(self._before_step)

    def _over(self) -> None:
        self._forward.remove()
        self._step.remove()

    def _before_forward(self, module: nn.Module, _) -> None:
        if attached() or multiprocessing.parent_process() is not None:  # the program has attached itself, or is a worker
            self._over()
            return
        optimizers = _optimizers()
        wanted = {id(parameter) for optimizer in optimizers for group in optimizer.param_groups for parameter in group["params"]}
        held = {id(parameter) for parameter in module.parameters()} if wanted else set()
        if wanted.isdisjoint(held):
            return
        if len(optimizers) > 1:
            names = ", ".join(type(optimizer).__name__ for optimizer in optimizers)
            self._refuse(f"there is more than one optimizer ({names}), and which step ends an iteration cannot be told")
        elif wanted <= held:
            self._over()
            self._attach(module, optimizers[0])

    def _before_step(self, optimizer: Optimizer, *_) -> None:
        if attached():
            self._over()
        elif any(optimizer is one for one in _optimizers()):
            self._refuse(f"no module whose forward was called holds all parameters of {type(optimizer).__name__}")

    def _attach(self, module: nn.Module, optimizer: Optimizer) -> None:
        if isinstance(optimizer, torch.optim.LBFGS):
            self._refuse("LBFGS calls the model inside of its step")
            return
        schedulers = [one for one in _alive(LRScheduler) if getattr(one, "optimizer", None) is optimizer]
        scalers = _alive(torch.amp.GradScaler)
        try:
            with torch.inference_mode(False):  # the first forward may be one of an evaluation
                run = attach(module, optimizer, scheduler=schedulers, extra={f"scaler.{i}": one for i, one in enumerate(scalers)},
                             boundary="optimizer")
        except Error:
            raise
        except Exception as error:
            self._refuse(str(error))
            return
        os.environ["SLURM_CAIRN_ATTACH"] = "none"
        what = ", ".join([type(unwrapped(module)).__name__, *(type(one).__name__ for one in [optimizer, *schedulers, *scalers])])
        if run.protected:
            _say(f"attached to {what}: " + (f"step {run.steps_done} is restored" if run.restored else "nothing to restore")
                 + "; the program's own counters and its place in the data are not saved")

    def _refuse(self, why: str) -> None:
        self._over()
        text = f"--checkpoint-attach=torch: {why}; attach in the program (cairn.torch.attach)"
        if os.environ.get("SLURM_CAIRN_SAVED") == "1":
            raise Mismatch(f"{text}. It would begin anew, and an earlier life of this job has saved: --checkpoint=off runs it all the same")
        _say(f"NOT PROTECTED: {text}")


def _say(text: str) -> None:
    rank = rank_and_size()[0]
    if rank == 0 or rank is None and os.environ.get("SLURM_PROCID", "0") == "0":
        print(f"cairn: {text}", file=sys.stderr, flush=True)
