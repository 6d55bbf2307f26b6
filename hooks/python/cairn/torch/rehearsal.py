"""What `cairn rehearse` cannot see from outside: what a program has of PyTorch's and has not attached, and what the plain values of a rank mean."""
import gc
import hashlib
import os
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Tuple

import torch
from torch import nn
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler


VALUES = "rehearsal.values"  # the blob of `described`: runtime/command/rehearsal_findings.h
_LONG = 100  # characters of a value


def is_one() -> bool:
    """Whether this life is the first of a rehearsal or the resumed one."""
    return (os.environ.get("SLURM_CAIRN_REHEARSAL") or os.environ.get("CAIRN_REHEARSAL") or "none") != "none"


def described(values: Mapping[str, Any], capacity: int) -> bytes:
    """A rank's values (`Run`'s) as lines NAME=VALUE, with the same names on whatever number of ranks. What does not fit stands in one line as a hash."""
    state: Dict[str, Any] = dict(values.get("plain", {}))
    if "place" in values:
        state["place"] = dict(zip(("epoch", "batch"), values["place"]))
    if values.get("sampler"):
        state["sampler"] = {key: value for key, value in values["sampler"].items() if key != "world_size"}
    for name, optimizer in values["optimizers"].items():
        groups = [{key: value for key, value in group.items() if key != "of"} for group in optimizer["groups"]]  # "of": a stage's own parameters
        own = {"state": {**optimizer["scalars"], **{parameter: "none yet" for parameter in optimizer["absent"]}}, "param_groups": groups}
        state.update({f"{name}.{key}": value for key, value in own.items() if value})
    lines = sorted(f"{name}={value}".replace("\n", " ") for name, value in _leaves("", state))
    kept, room = [], capacity - 100
    while lines and room >= len(lines[0].encode()) + 1:
        room -= len(lines[0].encode()) + 1
        kept.append(lines.pop(0))
    if lines:
        kept.append(f"({len(lines)} others)={_digest(repr(lines).encode())}")
    return "".join(line + "\n" for line in kept).encode()


def _leaves(name: str, value: Any) -> Iterator[Tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, one in value.items():
            yield from _leaves(f"{name}.{key}" if name else str(key), one)
    elif isinstance(value, (list, tuple)) and value:
        for i, one in enumerate(value):
            yield from _leaves(f"{name}.{i}", one)
    elif isinstance(value, torch.Tensor):
        yield name, repr(value.item()) if value.numel() == 1 else f"{value.dtype} {tuple(value.shape)} {_digest(repr(value.tolist()).encode())}"
    else:
        text = repr(value)
        yield name, text if len(text) <= _LONG else f"{text[:_LONG]}... {_digest(text.encode())}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def left_out(models: Mapping[str, nn.Module], optimizers: Iterable[Optimizer], plain: Iterable[Any]) -> List[str]:
    """Of a program that has attached these: what else is there, in words."""
    plain = list(plain)
    plain += [part for one in plain for part in getattr(one, "_schedulers", [])]
    trained = {id(parameter) for optimizer in optimizers for parameter in _parameters(optimizer)}
    found = [f"buffer {key}.{name} (persistent=False)" for key, model in models.items() for name in _volatile(model)]
    alive = [one for one in gc.get_objects() if issubclass(type(one), (nn.Module, Optimizer, LRScheduler, GradScaler))]
    for one in alive:
        if isinstance(one, Optimizer):
            known = any(id(parameter) in trained for parameter in _parameters(one))
        elif isinstance(one, GradScaler) and not one.is_enabled():
            known = True  # it has no state
        else:
            known = isinstance(one, nn.Module) or any(one is other for other in plain)
        if not known:
            found.append(type(one).__name__)
    return found + [f"{type(module).__name__} of {len(module.state_dict())} tensors" for module in _others(alive, models.values())]


def _others(alive: Iterable[Any], models: Iterable[nn.Module]) -> Iterator[nn.Module]:
    """Modules that hold something, none of it of an attached model, and are no parts of others."""
    held = {id(tensor) for model in models for tensor in (*model.parameters(), *model.buffers())}
    modules = [one for one in alive if isinstance(one, nn.Module)]
    parts = {id(part) for module in modules for part in module.modules() if part is not module}
    for module in modules:
        tensors = {id(tensor) for tensor in (*module.parameters(), *module.buffers())}
        if id(module) not in parts and tensors and tensors.isdisjoint(held):
            yield module


def _parameters(optimizer: Optimizer) -> Iterator[nn.Parameter]:
    return (parameter for group in getattr(optimizer, "param_groups", []) for parameter in group["params"])


def _volatile(model: nn.Module) -> Iterator[str]:
    for prefix, module in model.named_modules():
        yield from (f"{prefix}.{name}" if prefix else name for name in sorted(module._non_persistent_buffers_set))
