"""The tensors of a model, by the names that they have without any wrapper: what DDP, FSDP, torch.compile and activation checkpointing put around
a module leaves no trace in a name.
"""
import dataclasses
import re
from typing import Callable, Dict, Iterator, List, Optional, Tuple

import torch
from torch import nn

from cairn.torch.placement import Placement, local_of, place

_WRAPPERS = re.compile(r"(^|\.)(_fsdp_wrapped_module|_orig_mod|_checkpoint_wrapped_module)(?=\.|$)")


@dataclasses.dataclass
class Part:
    """One parameter or buffer, or this rank's part of it.

    local   its memory as it is now: programs and wrappers swap it
    holder  the parameter that an optimizer would have in its place; None of what no optimizer changes
    """

    name: str
    dtype: torch.dtype
    placement: Placement
    local: Callable[[], torch.Tensor]
    holder: Optional[torch.Tensor] = None


def unwrapped(model: nn.Module) -> nn.Module:
    """The module inside of DistributedDataParallel or DataParallel."""
    while isinstance(model, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
        model = model.module
    return model


def clean(name: str) -> str:
    return _WRAPPERS.sub("", name).lstrip(".")


def parts_of(model: nn.Module) -> Tuple[List[Part], Dict[int, List[Tuple[str, Placement, torch.Tensor]]]]:
    """The parts to save, and by id of each parameter that an optimizer may hold the names, placements and the parameter itself."""
    model = unwrapped(model)
    parts: Dict[str, Part] = {}
    by_parameter: Dict[int, List[Tuple[str, Placement, torch.Tensor]]] = {}
    flat = set()
    for part, parameter in _flat_parts(model):
        part.holder = parameter
        parts[part.name] = part
        flat.add(id(parameter))
        by_parameter.setdefault(id(parameter), []).append((part.name, part.placement, parameter))
    seen: Dict[int, str] = {}
    for name, tensor in _tensors(model):
        if id(tensor) in flat or id(tensor) in seen or type(tensor).__name__ == "FlatParameter":
            continue  # a tied parameter is saved under the first of its names
        seen[id(tensor)] = clean(name)
        placement = place(tensor)
        parts[clean(name)] = Part(clean(name), tensor.dtype, placement, lambda tensor=tensor: local_of(tensor), tensor)
        if isinstance(tensor, nn.Parameter):
            by_parameter[id(tensor)] = [(clean(name), placement, tensor)]
    return list(parts.values()), by_parameter


def _tensors(model: nn.Module) -> Iterator[Tuple[str, torch.Tensor]]:
    """Parameters, then buffers, as state_dict would have them: without those that are not persistent."""
    yield from model.named_parameters()
    for prefix, module in model.named_modules():
        for name, buffer in module._buffers.items():
            if buffer is not None and name not in module._non_persistent_buffers_set:
                yield f"{prefix}.{name}" if prefix else name, buffer


def flat_parameters(model: nn.Module) -> Iterator[Tuple[nn.Module, int, str]]:
    """The original parameters inside of FSDP1's flat ones: the FSDP module, the parameter's position in its flat parameter, and its name."""
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

    names = {id(module): prefix for prefix, module in model.named_modules()}
    for module in FSDP.fsdp_modules(model) if isinstance(model, nn.Module) else []:
        if module._flat_param is None:
            continue
        prefix = names.get(id(module), "")
        for i, fqn in enumerate(module._flat_param._fqns):
            yield module, i, clean(f"{prefix}.{fqn}" if prefix else fqn)


def _flat_parts(model: nn.Module) -> Iterator[Tuple[Part, nn.Parameter]]:
    """The same as parts, each with the parameter that an optimizer holds: itself, or the flat one."""
    for module, i, name in flat_parameters(model):
        flat = module._flat_param
        shape, info = tuple(flat._shapes[i]), flat._shard_param_infos[i]
        if info.in_shard:
            start, count, first = info.intra_param_start_idx, info.numel_in_shard, info.offset_in_shard
        else:
            start, count, first = 0, 0, 0
        original = flat._params[i] if flat._params is not None else None
        if original is not None:  # use_orig_params: a view of this rank's elements alone
            yield Part(name, original.dtype, Placement(shape, flat=(start, count, 0)), lambda p=original: p.detach()), original
        else:
            yield Part(name, flat.dtype, Placement(shape, flat=(start, count, first)), lambda p=flat: p.detach()), flat
