"""Checkpoint: a committed checkpoint, read in any process, without srun, a session or other ranks."""
import ctypes
import dataclasses
import os
from typing import TYPE_CHECKING, Dict, Optional, Sequence, Tuple, Union

from cairn import errors, library, memory

if TYPE_CHECKING:
    import numpy


@dataclasses.dataclass(frozen=True)
class SavedArray:
    """dtype as safetensors spells it; shape of the whole; fortran: column-major, dimensions as the program counted them."""

    index: int
    name: str
    dtype: str
    shape: Tuple[int, ...]
    fortran: bool


class Checkpoint:
    """Opens a checkpoint of the run in `directory`; every block that is read is compared with its checksum.

    directory  or a state of others, which has no checksums, and step, label and world_size of 0: a folder of torch.distributed.checkpoint, a
               safetensors file or a folder of such (Hugging Face)
    which      None: the newest that a restart would take; a step, a tag, or "best:METRIC:min" (or :max)
    Has `path` (of its folder), `step`, `label`, `world_size`, and `arrays` by name. One thread at a time. Not pruned while it is open and read from.
    Raises `cairn.Error` naming what there is where there is no such checkpoint, and ImportError where no libcairn.so can be found.
    """

    def __init__(self, directory: Union[str, os.PathLike], which: Union[None, int, str] = None):
        self._handle = ctypes.c_void_p()
        self._library = library.needed()
        target = os.fspath(directory) + ("" if which is None else f"@{which}")
        self._check(self._library.cairn_checkpoint_open(target.encode(), ctypes.byref(self._handle)))
        info = library.CheckpointInfo(ctypes.sizeof(library.CheckpointInfo))
        self._check(self._library.cairn_checkpoint_describe(self._handle, info))
        self.path, self.step, self.label, self.world_size = info.path.decode(), info.step, info.label, info.world_size
        self.arrays: Dict[str, SavedArray] = {}
        for index in range(info.array_count):
            saved = library.SavedArrayStruct(ctypes.sizeof(library.SavedArrayStruct))
            self._check(self._library.cairn_checkpoint_array(self._handle, index, saved))
            name = saved.name.decode()
            self.arrays[name] = SavedArray(index, name, memory.DTYPE_NAMES[saved.dtype], tuple(saved.shape[:saved.ndim]), saved.order == 1)

    def _check(self, code: int) -> None:
        library.check(self._library, code)

    def read(self, name: str, address: int, size: int, offset: Optional[Sequence[int]] = None, extent: Optional[Sequence[int]] = None) -> None:
        """Fills `size` bytes at `address` with an array, or a box of it, dense in the array's order. Raises `cairn.Damage` for what is not as it was."""
        box = (None, None) if offset is None else (memory.padded(offset, library.Dims), memory.padded(extent, library.Dims))
        self._check(self._library.cairn_checkpoint_read(self._handle, self._saved(name).index, *box, address, size))

    def array(self, name: str, offset: Optional[Sequence[int]] = None, extent: Optional[Sequence[int]] = None) -> "numpy.ndarray":
        """An array, or a box of it, as one of NumPy, which must be there. What NumPy has no dtype for comes as its bits: BF16 as uint16, F8 as uint8, F4
        as uint8 of two values, F6 as three bytes of four."""
        import numpy

        saved = self._saved(name)
        array = numpy.empty(saved.shape if extent is None else tuple(extent), memory.NUMPY[saved.dtype], "F" if saved.fortran else "C")
        self.read(name, array.ctypes.data, array.nbytes, offset, extent)
        return array

    def _saved(self, name: str) -> SavedArray:
        if name not in self.arrays:
            raise errors.of(errors.INVALID, f'{self.path} has no array "{name}"; it has {", ".join(self.arrays) or "none"}')
        return self.arrays[name]

    def blob(self, name: str, member: int = 0) -> Optional[bytes]:
        """What a member of the life that saved had in a blob; None where it had nothing, or there is no blob of this name."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._check(self._library.cairn_checkpoint_blob(self._handle, name.encode(), member, ctypes.byref(data), ctypes.byref(size)))
        return ctypes.string_at(data, size.value) if data else None

    def close(self) -> None:
        if self._handle:
            self._library.cairn_checkpoint_close(ctypes.byref(self._handle))

    def __enter__(self) -> "Checkpoint":
        return self

    def __exit__(self, *_) -> None:
        self.close()
