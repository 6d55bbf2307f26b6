"""Placement: which boxes of a whole parameter lie where in a local tensor. Makes all parallelisms one: plain and replicated parameters, DTensor
(FSDP2, tensor parallel, both), and the flat shards of FSDP1.
"""
import dataclasses
import math
from typing import List, Optional, Sequence, Tuple

import torch

from cairn.memory import Piece

# PyTorch's name of each element type, of which not every version has all. An element of float4_e2m1fn_x2 is two values in a byte.
_NAMES = {"float8_e8m0fnu": "F8_E8M0", "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "float4_e2m1fn_x2": "F4"}
DTYPES = {torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8", torch.float8_e5m2: "F8_E5M2", torch.float8_e4m3fn: "F8_E4M3",
          torch.int16: "I16", torch.uint16: "U16", torch.float16: "F16", torch.bfloat16: "BF16", torch.int32: "I32", torch.uint32: "U32",
          torch.float32: "F32", torch.float64: "F64", torch.int64: "I64", torch.uint64: "U64", torch.complex64: "C64",
          **{getattr(torch, type): name for type, name in _NAMES.items() if hasattr(torch, type)}}


_PLAIN = (torch.Tensor, torch.nn.Parameter)  # most of them, and told at once


@dataclasses.dataclass(frozen=True)
class Placement:
    """shape: of the whole. One of

    offset  the local tensor is the box of this offset, and of its own shape
    flat    (start, count, first): elements [start, start + count) of the row-major flattening lie from element `first` on in a local tensor
            that is contiguous
    """

    shape: Tuple[int, ...]
    offset: Optional[Tuple[int, ...]] = None
    flat: Optional[Tuple[int, int, int]] = None

    def pieces(self, local: torch.Tensor) -> List[Piece]:
        if self.flat is None:
            if local.numel() == 0:
                return []
            return [Piece(self.offset, tuple(local.shape), local.data_ptr(), tuple(local.stride()))]
        start, count, first = self.flat
        out = []
        for offset, extent, begin in boxes_of_range(self.shape, start, count):
            out.append(Piece(offset, extent, local.data_ptr() + (first + begin - start) * local.element_size()))
        return out

    def views(self, local: torch.Tensor) -> List[torch.Tensor]:
        """The tensors where the pieces lie."""
        if self.flat is None:
            return [local] if local.numel() else []
        start, count, first = self.flat
        flat = local.view(-1)
        return [flat.narrow(0, first + begin - start, math.prod(extent)).view(extent) for _, extent, begin in boxes_of_range(self.shape, start, count)]


def boxes_of_range(shape: Sequence[int], start: int, count: int):
    """Cuts a range of the row-major flattening into boxes: (offset, extent, first element), in the order of the range."""
    if count == 0:
        return
    if len(shape) <= 1:
        yield (start,) * len(shape), (count,) * len(shape), start
        return
    row = 1
    for extent in shape[1:]:
        row *= extent
    end = start + count
    first, last = -(-start // row), end // row  # whole rows: [first, last)
    if first > last:  # inside of one row
        for offset, extent, begin in boxes_of_range(shape[1:], start - last * row, count):
            yield (last, *offset), (1, *extent), begin + last * row
        return
    if start < first * row:
        for offset, extent, begin in boxes_of_range(shape[1:], start - (first - 1) * row, first * row - start):
            yield (first - 1, *offset), (1, *extent), begin + (first - 1) * row
    if first < last:
        yield (first, *(0 for _ in shape[1:])), (last - first, *shape[1:]), first * row
    if last * row < end:
        for offset, extent, begin in boxes_of_range(shape[1:], 0, end - last * row):
            yield (last, *offset), (1, *extent), begin + last * row


def place(tensor: torch.Tensor) -> Placement:
    """Of a plain tensor, which is the whole, or of a DTensor."""
    if not is_dtensor(tensor):
        return Placement(tuple(tensor.shape), offset=(0,) * tensor.dim())
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    if any(placement.is_partial() for placement in tensor.placements):
        raise ValueError("a DTensor with pending partial sums cannot be saved: reduce it first (redistribute)")
    shape, offset = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
    if tuple(shape) != tuple(tensor.to_local().shape):
        raise ValueError(f"a DTensor of shape {tuple(tensor.shape)} with placements {tensor.placements} is not one box on this rank")
    if 0 in shape:
        offset = (0,) * len(shape)
    return Placement(tuple(tensor.shape), offset=tuple(offset))


def is_dtensor(tensor: torch.Tensor) -> bool:
    return type(tensor) not in _PLAIN and hasattr(tensor, "to_local") and hasattr(tensor, "placements")


def local_of(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of this rank, detached from autograd."""
    tensor = tensor.detach()
    return tensor.to_local() if is_dtensor(tensor) else tensor
