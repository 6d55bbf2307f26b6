"""Memory that Cairn saves from and restores into: pieces of arrays, and where NumPy arrays and DLPack tensors lie. Nothing is copied here."""
import ctypes
import dataclasses
from typing import Any, Optional, Sequence, Tuple

# Names as safetensors spells them; values as CAIRN_* in cairn.h.
DTYPES = {name: value for value, name in enumerate(
    ("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "I16", "U16", "F16", "BF16", "I32", "U32", "F32", "F64", "I64", "U64", "C64", "F8_E8M0",
     "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4", "F6_E2M3", "F6_E3M2"))}
DTYPE_NAMES = {value: name for name, value in DTYPES.items()}


@dataclasses.dataclass
class Piece:
    """A box of a global array in this rank's memory.

    offset, extent  elements, one number a dimension
    data            address of the box's first element
    stride          elements between neighbours, one number a dimension; None = dense in row-major order
    """

    offset: Tuple[int, ...]
    extent: Tuple[int, ...]
    data: int
    stride: Optional[Tuple[int, ...]] = None


_CPU, _CUDA = (1, 3), (2, 13)  # DLPack's device types: with what CUDA has pinned of the CPU's, and what it manages of its own


def on_cuda(value: Any) -> bool:
    """Whether it lies in the memory of a CUDA device."""
    return not hasattr(value, "__array_interface__") and hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] in _CUDA


def describe(name: str, value: Any) -> Tuple[str, Tuple[int, ...], Optional[Tuple[int, ...]], int]:
    """(dtype, shape, strides in elements or None, address) of a NumPy array, or of anything that speaks DLPack in the memory
    of the CPU or of a CUDA device. `name` is for what is raised."""
    interface = getattr(value, "__array_interface__", None)
    if interface is not None:
        return _describe_numpy(name, interface)
    if hasattr(value, "__dlpack__"):
        return _describe_dlpack(name, value)
    raise TypeError(f'array "{name}": {type(value).__name__} is neither a NumPy array nor a DLPack tensor: give its address by add_array')


_NUMPY = {"b1": "BOOL", "u1": "U8", "i1": "I8", "i2": "I16", "u2": "U16", "f2": "F16", "i4": "I32", "u4": "U32", "f4": "F32", "f8": "F64",
          "i8": "I64", "u8": "U64", "c8": "C64"}
# Of what NumPy has no type of: elements of as many bytes.
NUMPY = {**{name: kind for kind, name in _NUMPY.items()}, "BF16": "u2",
         **{name: "u1" for name in DTYPES if name.startswith(("F8_", "F4"))}, **{name: "V3" for name in DTYPES if name.startswith("F6_")}}


def _describe_numpy(name, interface):
    kind, item = interface["typestr"][1:], int(interface["typestr"][2:])
    if interface["typestr"][0] == ">" or kind not in _NUMPY:
        raise TypeError(f"array \"{name}\": NumPy's {interface['typestr']} cannot be saved; convert it, to one of {', '.join(sorted(_NUMPY))}")
    address, read_only = interface["data"]
    if read_only:
        raise ValueError(f'array "{name}" is read-only: a restore could not fill it')
    strides = interface.get("strides")
    if strides is not None:
        if any(stride % item for stride in strides):
            raise ValueError(f'array "{name}": its strides are no multiples of its element\'s size')
        strides = tuple(stride // item for stride in strides)
    return _NUMPY[kind], tuple(interface["shape"]), strides, address


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):  # DLTensor of dlpack.h, at the head of DLManagedTensor
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("dtype", _DType),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_DLPACK = {(0, 8): "I8", (0, 16): "I16", (0, 32): "I32", (0, 64): "I64", (1, 8): "U8", (1, 16): "U16", (1, 32): "U32", (1, 64): "U64",
           (2, 16): "F16", (2, 32): "F32", (2, 64): "F64", (4, 16): "BF16", (5, 64): "C64", (6, 8): "BOOL", (10, 8): "F8_E4M3",
           (11, 8): "F8_E4M3FNUZ", (12, 8): "F8_E5M2", (13, 8): "F8_E5M2FNUZ", (14, 8): "F8_E8M0"}

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _describe_dlpack(name, value):
    if value.__dlpack_device__()[0] not in _CPU + _CUDA:
        raise TypeError(f'array "{name}" lies neither in the memory of the CPU nor in that of a CUDA device')
    capsule = value.__dlpack__(stream=-1) if on_cuda(value) else value.__dlpack__()  # -1: nobody waits for anybody
    tensor = _Tensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    key = (tensor.dtype.code, tensor.dtype.bits)
    if tensor.dtype.lanes != 1 or key not in _DLPACK:
        raise TypeError(f'array "{name}": DLPack\'s code {key[0]} with {key[1]} bits cannot be saved; convert it')
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
    return _DLPACK[key], shape, strides, (tensor.data or 0) + tensor.byte_offset


def rows_of(array: Any) -> Tuple[int, int, Optional[int]]:
    """(rows, bytes of a row, address) of a contiguous array in CPU memory that may be written to."""
    view = memoryview(array)
    if view.readonly or not view.c_contiguous or view.ndim < 1:
        raise ValueError("the rows of a table are a contiguous array that may be written to")
    rows = view.shape[0]
    if rows == 0:
        raise ValueError("a table has room for one row at least")
    return rows, view.nbytes // rows, ctypes.addressof(ctypes.c_char.from_buffer(array))


def padded(values: Optional[Sequence[int]], dims):
    """As a fixed-size C array."""
    return dims(*(values or ()))
