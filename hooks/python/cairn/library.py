"""The C interface (cairn.h) by ctypes, which releases the interpreter lock for the time of each call.

Looked for in this order: what the process has loaded already (the shim of `srun --checkpoint`, or a program that links it), the file that
CAIRN_LIBRARY names, libcairn.so where the loader finds it, the one that this package was installed with. Where there is none, `load` returns None and sessions are no-ops.
"""
import ctypes
import functools
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from typing import Optional

from cairn import errors

ABI_VERSION = 1
MAX_DIMS = 8
Dims = c_int64 * MAX_DIMS
Collect = ctypes.CFUNCTYPE(None, c_void_p)


class OpenOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("rank", c_int), ("world_size", c_int)]


class PieceStruct(ctypes.Structure):
    _fields_ = [("offset", Dims), ("extent", Dims), ("stride", Dims), ("data", c_void_p)]


class ArrayStruct(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("dtype", c_int), ("order", c_int), ("ndim", c_int), ("shape", Dims), ("piece_count", c_int),
                ("pieces", POINTER(PieceStruct)), ("optional", c_int), ("memory", c_int), ("stable_until", c_int)]


Grow = ctypes.CFUNCTYPE(c_void_p, POINTER(c_int64), c_void_p)
Owner = ctypes.CFUNCTYPE(c_int, c_void_p, c_int, c_void_p)


class TableStruct(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("row_bytes", c_int64), ("capacity", c_int64), ("rows", POINTER(c_int64)), ("data", c_void_p),
                ("grow", Grow), ("owner", Owner), ("user", c_void_p)]


class RenameStruct(ctypes.Structure):
    _fields_ = [("saved", c_char_p), ("registered", c_char_p)]


class LoadOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("match", c_int), ("rename_count", c_int), ("renames", POINTER(RenameStruct)), ("only_count", c_int),
                ("only", POINTER(c_char_p))]


class DifferenceStruct(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("kind", c_int), ("name", c_char_p), ("saved_name", c_char_p)]


class ReportStruct(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("restored", c_int), ("step", c_int64), ("label", c_int64), ("world_size_saved", c_int),
                ("items_loaded", c_int), ("items_reset", c_int), ("finished", c_int), ("match", c_int),
                ("difference_count", c_int), ("run_id", c_char_p)]


class CheckpointInfo(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("path", c_char_p), ("step", c_int64), ("label", c_int64), ("world_size", c_int), ("array_count", c_int)]


class SavedArrayStruct(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("dtype", c_int), ("order", c_int), ("ndim", c_int), ("shape", Dims)]


class BoxStruct(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("dtype", c_int), ("ndim", c_int), ("shape", Dims), ("offset", Dims), ("extent", Dims)]


class BytesStruct(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("data", c_char_p), ("size", c_size_t)]


class CommitStruct(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("folder", c_char_p), ("world_size", c_int), ("record_count", c_int), ("records", POINTER(BytesStruct)),
                ("blob_count", c_int), ("blobs", POINTER(BytesStruct)), ("tag", c_char_p), ("keep", c_char_p)]


Data = ctypes.CFUNCTYPE(c_void_p, c_int, c_void_p)


_FUNCTIONS = {
    "cairn_last_error": (c_char_p, []),
    "cairn_abi_version": (c_int, []),
    "cairn_open": (c_int, [POINTER(OpenOptions), POINTER(c_void_p)]),
    "cairn_active": (c_int, [c_void_p]),
    "cairn_add_array": (c_int, [c_void_p, c_char_p, POINTER(ArrayStruct)]),
    "cairn_add_table": (c_int, [c_void_p, c_char_p, POINTER(TableStruct)]),
    "cairn_add_sized_blob": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t, POINTER(c_size_t), c_int]),
    "cairn_add_output": (c_int, [c_void_p, c_char_p]),
    "cairn_saved_blob": (c_int, [c_void_p, c_char_p, c_int, POINTER(c_void_p), POINTER(c_size_t)]),
    "cairn_on_copy": (c_int, [c_void_p, Collect, c_void_p]),
    "cairn_refuse_copy": (c_int, [c_void_p, c_char_p]),
    "cairn_update": (c_int, [c_void_p, c_char_p, c_int, c_void_p]),
    "cairn_update_item": (c_int, [c_void_p, c_int, c_int, c_void_p]),
    "cairn_set_load": (c_int, [c_void_p, POINTER(LoadOptions)]),
    "cairn_restored_difference": (c_int, [c_void_p, c_int, POINTER(DifferenceStruct)]),
    "cairn_restore": (c_int, [c_void_p, POINTER(ReportStruct)]),
    "cairn_step": (c_int, [c_void_p, c_int64]),
    "cairn_fence": (c_int, [c_void_p]),
    "cairn_set_stream": (c_int, [c_void_p, c_int, c_void_p]),
    "cairn_quiet_begin": (c_int, [c_void_p]),
    "cairn_quiet_end": (c_int, [c_void_p]),
    "cairn_save": (c_int, [c_void_p, c_char_p]),
    "cairn_metric": (c_int, [c_void_p, c_char_p, c_double]),
    "cairn_wait": (c_int, [c_void_p, c_int]),
    "cairn_finalize": (c_int, [POINTER(c_void_p)]),
    "cairn_checkpoint_open": (c_int, [c_char_p, POINTER(c_void_p)]),
    "cairn_checkpoint_describe": (c_int, [c_void_p, POINTER(CheckpointInfo)]),
    "cairn_checkpoint_array": (c_int, [c_void_p, c_int, POINTER(SavedArrayStruct)]),
    "cairn_checkpoint_read": (c_int, [c_void_p, c_int, POINTER(c_int64), POINTER(c_int64), c_void_p, c_size_t]),
    "cairn_checkpoint_blob": (c_int, [c_void_p, c_char_p, c_int, POINTER(c_void_p), POINTER(c_size_t)]),
    "cairn_checkpoint_close": (c_int, [POINTER(c_void_p)]),
    "cairn_writer_open": (c_int, [c_char_p, POINTER(c_void_p)]),
    "cairn_writer_begin": (c_int, [c_void_p, c_int64, POINTER(c_char_p)]),
    "cairn_write_boxes": (c_int, [c_char_p, c_int, POINTER(BoxStruct), c_int, Data, c_void_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "cairn_writer_commit": (c_int, [c_void_p, POINTER(CommitStruct)]),
    "cairn_writer_close": (c_int, [POINTER(c_void_p)]),
}


@functools.lru_cache(maxsize=None)
def load() -> Optional[ctypes.CDLL]:
    """The library, its functions declared; None where there is none."""
    beside = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../../libcairn.so"))  # of <libdir>/cairn/python/cairn
    for path in (None, os.environ.get("CAIRN_LIBRARY"), "libcairn.so", beside):
        try:
            library = ctypes.CDLL(path)
            library.cairn_open
        except (OSError, AttributeError):
            continue
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        found = library.cairn_abi_version()
        if found != ABI_VERSION:
            raise ImportError(f"libcairn.so has interface version {found}, this package speaks {ABI_VERSION}: "
                              "install the package that came with the cluster's Cairn")
        return library
    return None


def needed() -> ctypes.CDLL:
    """The same where there is nothing to do without."""
    library = load()
    if library is None:
        raise ImportError("libcairn.so is nowhere to be found: name it in CAIRN_LIBRARY (for example CAIRN_LIBRARY=/opt/cairn/lib/libcairn.so)")
    return library


def check(library: ctypes.CDLL, code: int) -> None:
    """Raises what a function of the library has returned."""
    if code != 0:
        raise errors.of(code, (library.cairn_last_error() or b"").decode(errors="replace"))
