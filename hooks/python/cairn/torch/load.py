"""load: tensors out of a committed checkpoint, without srun, a session or a process group."""
import fnmatch
import os
from typing import Dict, Iterable, Mapping, Optional, Union

import torch
from torch import nn

from cairn.checkpoint import Checkpoint, SavedArray
from cairn.errors import Invalid, Mismatch
from cairn.memory import Piece
from cairn.torch.changes import renamed
from cairn.torch.model import parts_of
from cairn.torch.placement import DTYPES

TYPES = {name: dtype for dtype, name in DTYPES.items()}


def load(directory: Union[str, os.PathLike], step: Union[None, int, str] = None, only: Union[str, Iterable[str]] = "*", into: Union[None, nn.Module] = None,
         device: Union[None, str, torch.device] = None, rename: Optional[Mapping[str, str]] = None) -> Dict[str, torch.Tensor]:
    """Reads a checkpoint of the run in `directory`, in any process; or a state of others: a folder of torch.distributed.checkpoint, a safetensors file
    or a folder of such (Hugging Face).

    step    None: the newest that a restart would take; a step, a tag, or "best:METRIC:min" (or :max)
    only    patterns of names to be loaded: "model.*", "optim.state.*.exp_avg"
    into    a module that is filled in place: its parameters and persistent buffers by the names that `attach` gave them ("model.…"), each rank
            its own part where they are sharded, converted to their dtypes. What lies on the meta device is made on `device` first. A state of
            others may lack the "model."
    device  of the tensors that are made; None: the CPU
    rename  by a pattern of names in the checkpoint, as `only` and `into` mean them: {"transformer.*": "model.backbone.*"}; a '*' stands for any
            characters
    Returns the tensors by name; with `into` those of the module. Raises `cairn.Mismatch` naming what the module has and the checkpoint lacks,
    or has in another shape; `cairn.Damage` for what is not as it was written.
    """
    patterns = [only] if isinstance(only, str) else list(only)
    with Checkpoint(directory, step) as checkpoint:
        saved = {renamed(rename or {}, name): array for name, array in checkpoint.arrays.items()}
        if len(saved) != len(checkpoint.arrays):
            raise Invalid("rename: two tensors of the checkpoint get one name")
        if into is None:
            return {name: read_box(checkpoint, array.name).to(device or "cpu") for name, array in saved.items() if _chosen(name, patterns)}
        return _fill(checkpoint, saved, into, patterns, device)


def _chosen(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def read_box(checkpoint: Checkpoint, name: str, piece: Union[None, Piece] = None) -> torch.Tensor:
    """An array or a box of it."""
    saved = checkpoint.arrays[name]
    if saved.dtype not in TYPES:
        raise Mismatch(f'array "{name}" is {saved.dtype}, and this PyTorch has no such type: leave it out by `only`, or read its bytes by '
                       "cairn.Checkpoint")
    offset, extent = (None, saved.shape) if piece is None else (piece.offset, piece.extent)
    tensor = torch.empty(tuple(reversed(extent)) if saved.fortran else extent, dtype=TYPES[saved.dtype])
    checkpoint.read(name, tensor.data_ptr(), tensor.numel() * tensor.element_size(), offset, extent)
    return tensor.permute(*reversed(range(tensor.dim()))) if saved.fortran else tensor


def _fill(checkpoint: Checkpoint, saved: Mapping[str, SavedArray], module: nn.Module, patterns, device) -> Dict[str, torch.Tensor]:
    _materialize(module, device or "cpu")
    filled, wrong = {}, []
    parts = [part for part in parts_of(module)[0] if _chosen(f"model.{part.name}", patterns)]
    if sum(part.name in saved for part in parts) > sum(f"model.{part.name}" in saved for part in parts):
        saved = {f"model.{name}": array for name, array in saved.items()}
    for part in parts:
        array = saved.get(f"model.{part.name}")
        if array is None:
            wrong.append(f"model.{part.name}: not in the checkpoint")
        elif array.shape != part.placement.shape:
            wrong.append(f"model.{part.name}: saved {list(array.shape)}, in the module {list(part.placement.shape)}")
    if wrong:
        raise Mismatch(f"{checkpoint.path} and the module differ:\n  " + "\n  ".join(wrong))
    with torch.no_grad():
        for part in parts:
            name, local = f"model.{part.name}", part.local()
            for view, piece in zip(part.placement.views(local), part.placement.pieces(local)):
                view.copy_(read_box(checkpoint, saved[name].name, piece))
            filled[name] = local
    return filled


def _materialize(module: nn.Module, device) -> None:
    """Makes what has only a shape, so that tied parameters stay tied. What is not persistent is left to the program."""
    made: Dict[int, torch.Tensor] = {}

    def real(tensor):
        if tensor is None or not tensor.is_meta:
            return tensor
        if id(tensor) not in made:
            empty = torch.empty_like(tensor, device=device)
            made[id(tensor)] = nn.Parameter(empty, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else empty
        return made[id(tensor)]

    for one in module.modules():
        for name, parameter in one._parameters.items():
            one._parameters[name] = real(parameter)
        for name, buffer in one._buffers.items():
            if name not in one._non_persistent_buffers_set:
                one._buffers[name] = real(buffer)
