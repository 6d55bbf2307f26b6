"""Session: one rank's part of a run. The calls are those of cairn.h, which says more of each."""
import contextlib
import ctypes
import dataclasses
import enum
from typing import Any, Callable, Iterable, List, Optional, Sequence

from cairn import errors, library, memory


class Policy(enum.IntEnum):
    """What becomes of a blob when the number of ranks has changed between a save and its restore."""

    REFUSE = 0  #: the restore fails
    RESEED = 1  #: not restored; counted in the report
    DROP = 2  #: the same, on purpose
    MERGE = 3  #: never written back: `Session.saved_blobs` gives every rank the bytes of all


@dataclasses.dataclass(frozen=True)
class Report:
    """How a restore went.

    restored          a checkpoint was loaded
    step              count of `Session.step` calls at its save; 0 without one
    label             the label given to that call
    world_size_saved  ranks of the life that saved
    items_loaded, items_reset
    finished          the run was finished: there is nothing left to do
    """

    restored: bool = False
    step: int = 0
    label: int = 0
    world_size_saved: int = 0
    items_loaded: int = 0
    items_reset: int = 0
    finished: bool = False


class Session:
    """Opens the session; collective over the ranks.

    rank, world_size   None: as Slurm gave them
    Raises `cairn.Busy` when the directory belongs to another live job or step.
    One thread at a time may be inside a session's call.
    """

    def __init__(self, name: str = "main", rank: Optional[int] = None, world_size: Optional[int] = None):
        self._library = library.load()
        self._handle = ctypes.c_void_p()
        self._kept: List[Any] = []  # memory and callbacks that the library knows by address
        self._items = 0
        self._blobs = {}
        if self._library is None:
            return
        options = library.OpenOptions(ctypes.sizeof(library.OpenOptions), name.encode(), -1 if rank is None else rank, world_size or 0)
        self._check(self._library.cairn_open(options, ctypes.byref(self._handle)))
        self._step = self._library.cairn_step

    def _check(self, code: int) -> None:
        if code != 0:
            raise errors.of(code, (self._library.cairn_last_error() or b"").decode(errors="replace"))

    @property
    def active(self) -> bool:
        """Whether this life is protected: saves will be made."""
        return bool(self._handle) and self._library.cairn_active(self._handle) == 1

    # ---- what makes up the state, before restore() ----

    def add(self, name: str, value: Any, shape: Optional[Sequence[int]] = None, offset: Optional[Sequence[int]] = None) -> int:
        """Adds an array of which `value` (NumPy, or DLPack in CPU memory) is this rank's part; `value` is kept alive.

        shape   of the whole array; None: `value` is all of it, the same on every rank
        offset  of this rank's part, elements; None: zeros
        Returns the item's number, for `update`.
        """
        dtype, extent, stride, address = memory.describe(value)
        piece = memory.Piece(tuple(offset or (0,) * len(extent)), extent, address, stride)
        self._kept.append(value)
        return self.add_array(name, dtype, extent if shape is None else shape, [piece])

    def add_array(self, name: str, dtype: str, shape: Sequence[int], pieces: Iterable[memory.Piece], fortran: bool = False,
                  optional: bool = False) -> int:
        """Adds an array by its addresses, whose memory the caller keeps valid. Every rank adds every array, with its own pieces.

        dtype     as safetensors spells it ("F32", "BF16", …)
        fortran   column-major; dimensions as the program counts them
        optional  ranks that hold nothing of it may leave it out
        """
        pieces = list(pieces)
        if len(shape) > library.MAX_DIMS:
            raise errors.Invalid(f'array "{name}" has {len(shape)} dimensions; at most {library.MAX_DIMS} are possible')
        structs = (library.PieceStruct * max(len(pieces), 1))()
        for struct, piece in zip(structs, pieces):
            struct.offset, struct.extent = memory.padded(piece.offset, library.Dims), memory.padded(piece.extent, library.Dims)
            struct.stride, struct.data = memory.padded(piece.stride, library.Dims), piece.data
        array = library.ArrayStruct(ctypes.sizeof(library.ArrayStruct), memory.DTYPES[dtype], 1 if fortran else 0, len(shape),
                                    memory.padded(shape, library.Dims), len(pieces), structs,
                                    1 if optional else 0)
        return self._added(lambda: self._library.cairn_add_array(self._handle, name.encode(), array))

    def add_blob(self, name: str, capacity: int, policy: Policy) -> "Blob":
        """Adds bytes of this rank's own, at most `capacity` (64 KiB), whose number may change."""
        blob = Blob(capacity)
        self._blobs[name] = blob
        self._added(lambda: self._library.cairn_add_sized_blob(self._handle, name.encode(), blob.buffer, capacity, ctypes.byref(blob.size),
                                                               int(policy)))
        return blob

    def _added(self, add: Callable[[], int]) -> int:
        if self._handle:
            self._check(add())
        self._items += 1
        return self._items - 1

    def update(self, item: int, piece: int, data: int) -> None:
        """Gives a piece another address. Allowed at any time, most of all in the callback of `on_copy`."""
        if self._handle:
            self._check(self._library.cairn_update_item(self._handle, item, piece, data))

    def on_copy(self, collect: Callable[[], None]) -> None:
        """Has `collect` called right before this rank's state is copied. An exception in it is printed, and the save goes on with what is there."""
        callback = library.Collect(lambda _: collect())
        self._kept.append(callback)
        if self._handle:
            self._check(self._library.cairn_on_copy(self._handle, callback, None))

    # ---- the run ----

    def restore(self) -> Report:
        """Loads the newest valid checkpoint into the registered memory, if there is one; collective, once, before the first step.

        After an exception no rank may run on: the memory may be partly overwritten.
        """
        if not self._handle:
            return Report()
        report = library.ReportStruct(ctypes.sizeof(library.ReportStruct))
        self._check(self._library.cairn_restore(self._handle, report))
        return Report(bool(report.restored), report.step, report.label, report.world_size_saved, report.items_loaded, report.items_reset,
                      bool(report.finished))

    def saved_blobs(self, name: str, world_size_saved: int) -> List[bytes]:
        """After `restore`: what each rank of the life that saved had in a blob of Policy.MERGE."""
        out = []
        for member in range(world_size_saved if self._handle else 0):
            data, size = ctypes.c_void_p(), ctypes.c_size_t()
            self._check(self._library.cairn_saved_blob(self._handle, name.encode(), member, ctypes.byref(data), ctypes.byref(size)))
            out.append(ctypes.string_at(data, size.value) if size.value else b"")
        return out

    def step(self, label: int = 0) -> None:
        """A boundary: the state is consistent here. Costs a microsecond unless a save is due at it."""
        if self._handle:
            self._step(self._handle, label)

    @contextlib.contextmanager
    def quiet(self):
        """While inside, the state does not change (validation, waiting for data), and a save may be made at any moment."""
        if self._handle:
            self._library.cairn_quiet_begin(self._handle)
        try:
            yield
        finally:
            if self._handle:
                self._library.cairn_quiet_end(self._handle)

    def save(self, tag: Optional[str] = None) -> None:
        """Asks for a save at one of the next boundaries; one rank is enough. A tagged checkpoint is never pruned."""
        if self._handle:
            self._check(self._library.cairn_save(self._handle, None if tag is None else tag.encode()))

    def wait(self, timeout: Optional[float] = None) -> None:
        """Waits until every save that was asked for has ended; collective, at one boundary. `timeout` in seconds; raises `cairn.Timeout`."""
        if self._handle:
            self._check(self._library.cairn_wait(self._handle, -1 if timeout is None else int(timeout * 1000)))

    def finalize(self) -> None:
        """Ends the session; collective: a last save, durable, and the run is recorded as finished. The session is a no-op afterwards."""
        if self._handle:
            self._check(self._library.cairn_finalize(ctypes.byref(self._handle)))
            self._kept.clear()


class Blob:
    """Bytes that are saved with the state. What was restored is in `value` after `Session.restore`."""

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.buffer = ctypes.create_string_buffer(capacity)
        self.size = ctypes.c_size_t(0)

    @property
    def value(self) -> bytes:
        return self.buffer.raw[:self.size.value]

    @value.setter
    def value(self, data: bytes) -> None:
        if len(data) > self.capacity:
            raise errors.Invalid(f"{len(data)} bytes do not fit a blob of {self.capacity}")
        ctypes.memmove(self.buffer, data, len(data))
        self.size.value = len(data)
