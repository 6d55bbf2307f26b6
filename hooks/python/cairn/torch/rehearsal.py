"""What `cairn rehearse` cannot see from outside: what a program has of PyTorch's and has not attached."""
import gc
import os
from typing import Any, Iterable, Iterator, List, Mapping

from torch import nn
from torch.amp import GradScaler
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler


def is_one() -> bool:
    """Whether this life is the first of a rehearsal or the resumed one."""
    return (os.environ.get("SLURM_CAIRN_REHEARSE") or os.environ.get("CAIRN_REHEARSE") or "none") != "none"


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
