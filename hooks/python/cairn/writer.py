"""Writer: a run's directory in the hands of a program that decides by itself what is saved when. No srun, no session.

One process has a `Writer`, and tells the others the folder that `Writer.begin` gives; all call `write_boxes`, and give it their records; it commits.
"""
import ctypes
import dataclasses
import os
import sys
import threading
from multiprocessing import util
from typing import Callable, Mapping, Optional, Sequence, Tuple, Union

from cairn import errors, library, memory


@dataclasses.dataclass(frozen=True)
class Box:
    """A box of an array, row-major. dtype as safetensors spells it; shape of the whole array; offset and extent of the box, elements."""

    name: str
    dtype: str
    shape: Tuple[int, ...]
    offset: Tuple[int, ...]
    extent: Tuple[int, ...]


class Writer:
    """Owns the run in `directory`, which is made if it is not there, until `close` or the end of the interpreter.

    Raises `cairn.Busy` naming another owner that lives; one that has died without a word is waited for, at most 30 s. Any threads.
    """

    def __init__(self, directory: Union[str, os.PathLike]):
        self._handle = ctypes.c_void_p()
        self._lock = threading.Lock()
        self._library = library.needed()
        self._check(self._library.cairn_writer_open(os.fsencode(directory), ctypes.byref(self._handle)))
        self._at_end = util.Finalize(None, self.close, exitpriority=0)  # in processes of multiprocessing too, which atexit leaves out

    def _check(self, code: int) -> None:
        library.check(self._library, code)

    def begin(self, step: Optional[int] = None) -> str:
        """Begins a checkpoint, and gives up what was begun before. Returns the folder for `write_boxes`.

        step  None: one past the newest. The first of an owner, and one that is not past its last, goes on from the newest of an earlier step: what was
              saved past that is kept as another branch
        Raises `cairn.Busy` when another owner has taken over.
        """
        if step is not None and step < 0:
            raise errors.Invalid(f"step {step} is negative")
        folder = ctypes.c_char_p()
        with self._lock:
            self._check(self._library.cairn_writer_begin(self._handle, -1 if step is None else step, ctypes.byref(folder)))
            return os.fsdecode(folder.value)

    def commit(self, folder: str, records: Sequence[bytes], blobs: Optional[Mapping[str, bytes]] = None, world_size: int = 1,
               tag: Optional[str] = None, keep: Optional[str] = None) -> None:
        """Makes the checkpoint that was begun in `folder`, durably.

        records  what `write_boxes` returned, of all files
        blobs    small things beside the arrays: `Checkpoint.blob`
        tag      a name that keeps it from being pruned
        keep     None: nothing is pruned; else as --checkpoint-keep
        Raises `cairn.Mismatch` when ranks differ in what an array is, or one has a hole, and `cairn.Busy` when another owner has taken over.
        """
        def array(items):
            return (library.BytesStruct * max(len(items), 1))(*((name.encode() if name else None, data, len(data)) for name, data in items))

        blobs = list((blobs or {}).items())
        struct = library.CommitStruct(ctypes.sizeof(library.CommitStruct), os.fsencode(folder), world_size, len(records),
                                      array([(None, record) for record in records]), len(blobs), array(blobs),
                                      None if tag is None else tag.encode(), None if keep is None else keep.encode())
        with self._lock:
            self._check(self._library.cairn_writer_commit(self._handle, struct))

    def close(self) -> None:
        with self._lock:
            self._check(self._library.cairn_writer_close(ctypes.byref(self._handle)))
        self._at_end.cancel()


def write_boxes(folder: str, number: int, boxes: Sequence[Box], data: Callable[[int], int]) -> bytes:
    """Writes boxes into file `number` (from 1; its own) of the checkpoint that was begun in `folder`, durably. Returns the record to commit.

    boxes  at most one of each array
    data   called once for each box that is not empty, by position, in an order of the file's: returns the address of its bytes, dense and
           row-major, which stay valid until the next call. What it raises is raised here
    """
    functions = library.needed()
    structs = (library.BoxStruct * max(len(boxes), 1))()
    for struct, box in zip(structs, boxes):
        if len(box.shape) > library.MAX_DIMS:
            raise errors.Invalid(f'array "{box.name}" has {len(box.shape)} dimensions; at most {library.MAX_DIMS} are possible')
        struct.name, struct.dtype, struct.ndim = box.name.encode(), memory.DTYPES[box.dtype], len(box.shape)
        struct.shape, struct.offset, struct.extent = (memory.padded(dims, library.Dims) for dims in (box.shape, box.offset, box.extent))
    failed = []

    def fetch(index, _):
        try:
            return data(index)
        except BaseException:  # nothing may pass through the C code that calls
            failed.append(sys.exc_info()[1])
            return None

    record, size = ctypes.c_void_p(), ctypes.c_size_t()
    code = functions.cairn_write_boxes(os.fsencode(folder), number, structs, len(boxes), library.Data(fetch), None, ctypes.byref(record),
                                       ctypes.byref(size))
    if failed:
        raise failed[0]
    library.check(functions, code)
    return ctypes.string_at(record, size.value)
