"""Codec: small Python state (of schedulers, scalers, loaders, generators, optimizers' scalars) as JSON, exact, and safe to read: no pickle.

Takes None, bool, int, float, str, bytes, list, tuple, set, deque, dict with any of the simple ones as keys, and tensors and NumPy values. `decode`
gives back equal values of the same types.
"""
import base64
import collections
import ctypes
import json
import zlib
from typing import Any

import torch

_SIMPLE = (type(None), bool, int, float, str)


def encode(value: Any, where: str = "state") -> bytes:
    """Raises TypeError that names what cannot be taken, and where it was found."""
    return zlib.compress(json.dumps(_pack(value, where), separators=(",", ":")).encode(), 1)


def decode(data: bytes) -> Any:
    return _unpack(json.loads(zlib.decompress(data)))


def _pack(value, where):
    if type(value) in _SIMPLE:
        return value
    if isinstance(value, dict):
        return {"d": [[_pack(key, where), _pack(item, f"{where}[{key!r}]")] for key, item in value.items()]}
    for kind, mark in ((list, "l"), (tuple, "t"), (collections.deque, "q"), (set, "s")):
        if isinstance(value, kind):
            return {mark: [_pack(item, f"{where}[{i}]") for i, item in enumerate(value)]}
    if isinstance(value, (bytes, bytearray)):
        return {"b": base64.b64encode(value).decode()}
    if isinstance(value, torch.Tensor):
        plain = value.detach().cpu().contiguous()
        data = ctypes.string_at(plain.data_ptr(), plain.numel() * plain.element_size())
        return {"T": [str(plain.dtype)[len("torch."):], list(plain.shape), base64.b64encode(data).decode()]}
    if type(value).__module__ == "numpy":
        import numpy

        array = numpy.ascontiguousarray(value)
        return {"N": [array.dtype.str, list(numpy.shape(value)), base64.b64encode(array.tobytes()).decode()]}
    raise TypeError(f"{where} is a {type(value).__module__}.{type(value).__qualname__}, which Cairn does not save: keep it out, or give plain "
                    "values and tensors")


def _unpack(value):
    if not isinstance(value, dict):
        return value
    (mark, content), = value.items()
    if mark == "d":
        return {_unpack(key): _unpack(item) for key, item in content}
    if mark in "ltqs":
        return {"l": list, "t": tuple, "q": collections.deque, "s": set}[mark](map(_unpack, content))
    data = base64.b64decode(content if mark == "b" else content[2])
    if mark == "b":
        return data
    if mark == "T":
        return torch.frombuffer(bytearray(data), dtype=getattr(torch, content[0])).reshape(content[1]) if data else torch.empty(
            content[1], dtype=getattr(torch, content[0]))
    import numpy

    array = numpy.frombuffer(data, dtype=content[0]).reshape(content[1]).copy()
    return array if content[1] else array[()]
