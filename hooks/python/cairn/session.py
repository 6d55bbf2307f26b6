"""Session: one rank's part of a run. The calls are those of cairn.h, which says more of each."""
import contextlib
import ctypes
import dataclasses
import enum
import os
import sys
import traceback
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from cairn import errors, library, memory


_ALLOWED = {"allow-missing": 1, "allow-extra": 2}
_RENAMED, _KINDS = 0, ("renamed", "missing", "extra", "reset", "left")  # CAIRN_ITEM_*


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
    world_size_saved  ranks of the life that saved; 0 of a state that Cairn has not made
    finished          the run was finished: there is nothing left to do
    run_id            of the run, the same in all its lives; "" where there is none
    match             which differences were allowed, as --checkpoint-match spells it

    Names of items, empty where nothing was restored:
    loaded            from the checkpoint
    missing           not in the checkpoint: as the program made them
    extra             in the checkpoint alone
    reset             blobs that their policy left alone, since the number of ranks has changed
    left              not chosen (`only`): as the program made them
    renamed           of those loaded: by the name in the checkpoint, the program's
    """

    restored: bool = False
    step: int = 0
    label: int = 0
    world_size_saved: int = 0
    finished: bool = False
    run_id: str = ""
    match: str = "strict"
    loaded: Tuple[str, ...] = ()
    missing: Tuple[str, ...] = ()
    extra: Tuple[str, ...] = ()
    reset: Tuple[str, ...] = ()
    left: Tuple[str, ...] = ()
    renamed: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Session:
    """Opens the session; collective over the ranks. ``with cairn.Session() as session:`` finalizes it at the end of the block, and leaves it as it is when
    an exception passes: the run can be resumed then.

    rank, world_size   None: as Slurm gave them
    Raises `cairn.Busy` when the directory belongs to another live job or step.
    One thread at a time may be inside a session's call.
    """

    def __init__(self, name: str = "main", rank: Optional[int] = None, world_size: Optional[int] = None):
        self._library = library.load()
        self._handle = ctypes.c_void_p()
        self._kept: List[Any] = []  # memory and callbacks that the library knows by address
        self._items: List[str] = []  # names
        self._world_size_saved = 0
        if self._library is None:
            return
        options = library.OpenOptions(ctypes.sizeof(library.OpenOptions), name.encode(), -1 if rank is None else rank, world_size or 0)
        self._check(self._library.cairn_open(options, ctypes.byref(self._handle)))
        self._step = self._library.cairn_step

    def _check(self, code: int) -> None:
        library.check(self._library, code)

    @property
    def active(self) -> bool:
        """Whether this life is protected: saves will be made."""
        return bool(self._handle) and self._library.cairn_active(self._handle) == 1

    # ---- what makes up the state, before restore() ----

    def add(self, name: str, value: Any, shape: Optional[Sequence[int]] = None, offset: Optional[Sequence[int]] = None, fence: bool = False) -> int:
        """Adds an array of which `value` (NumPy, or DLPack in the memory of the CPU or of a CUDA device) is this rank's part; `value` is kept alive.

        shape   of the whole array; None: `value` is all of it, the same on every rank
        offset  of this rank's part, elements; None: zeros
        fence   as in `add_array`
        Returns the item's number, for `update`.
        """
        dtype, extent, stride, address = memory.describe(name, value)
        piece = memory.Piece(tuple(offset or (0,) * len(extent)), extent, address, stride)
        self._kept.append(value)
        return self.add_array(name, dtype, extent if shape is None else shape, [piece], cuda=memory.on_cuda(value), fence=fence)

    def add_array(self, name: str, dtype: str, shape: Sequence[int], pieces: Iterable[memory.Piece], fortran: bool = False,
                  optional: bool = False, cuda: bool = False, fence: bool = False) -> int:
        """Adds an array by its addresses, whose memory the caller keeps valid. Every rank adds every array, with its own pieces.

        dtype     as safetensors spells it ("F32", "BF16", …); of what is smaller than a byte an element is the values that share bytes: two in one of
                  F4, four in three of F6
        fortran   column-major; dimensions as the program counts them
        optional  ranks that hold nothing of it may leave it out
        cuda      the pieces lie in the memory of CUDA devices
        fence     it stays as it is until `fence`, not only until `step` returns: so the devices' memory may be copied meanwhile
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
                                    1 if optional else 0, 1 if cuda else 0, 1 if fence else 0)
        return self._added(name, lambda: self._library.cairn_add_array(self._handle, name.encode(), array))

    def add_table(self, name: str, rows: Any, count: int = 0, grow: Optional[Callable[[int], Any]] = None,
                  owner: Optional[Callable[[bytes, int], int]] = None) -> "Table":
        """Adds a table: rows of one record type, of which every rank has some, and any may have any number (particles).

        rows   all that fit: a contiguous array whose first dimension counts rows (of NumPy records, say); kept alive
        count  how many of them count; afterwards `Table.count` says so, and `restore` sets it
        grow   called in `restore` with how many rows this rank gets, when they do not fit: returns another `rows` that has room for them
        owner  called in `restore` with each row and the number of ranks: which rank gets it. None: all rows are split evenly
        """
        table = Table(rows, count, grow, owner)
        self._kept.append(table)
        self._added(name, lambda: self._library.cairn_add_table(self._handle, name.encode(), table.struct))
        return table

    def add_blob(self, name: str, capacity: int, policy: Policy) -> "Blob":
        """Adds bytes of this rank's own, at most `capacity` (64 KiB, of Policy.MERGE 1 MiB), whose number may change."""
        blob = Blob(name, capacity)
        self._kept.append(blob)
        self._added(name, lambda: self._library.cairn_add_sized_blob(self._handle, name.encode(), blob.buffer, capacity,
                                                                     ctypes.byref(blob.size), int(policy)))
        return blob

    def add_output(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Adds a file to which this rank only ever appends: `restore` cuts it back to its length at the save. The one rank that writes it adds it.

        Flush it before each `step`, or in the callback of `on_copy`; open it after `restore`, with "a" if that restored, else with "w".
        """
        if self._handle:
            self._check(self._library.cairn_add_output(self._handle, os.fsencode(path)))

    def _added(self, name: str, add: Callable[[], int]) -> int:
        if self._handle:
            self._check(add())
        self._items.append(name)
        return len(self._items) - 1

    def update(self, item: Union[int, str], piece: int, data: int) -> None:
        """Gives a piece another address. Allowed at any time, most of all in the callback of `on_copy`.

        item  its name, or the number that `add` and `add_array` return
        """
        if self._handle and isinstance(item, str):
            self._check(self._library.cairn_update(self._handle, item.encode(), piece, data))
        elif self._handle:
            self._check(self._library.cairn_update_item(self._handle, item, piece, data))

    def on_copy(self, collect: Callable[[], None]) -> None:
        """Has `collect` called right before this rank's state is copied. An exception in it is printed, and that save fails."""

        def called(_):
            try:
                collect()
            except BaseException as error:  # nothing may pass through the C code that calls
                traceback.print_exc(file=sys.stderr)
                self._library.cairn_refuse_copy(self._handle, f"{type(error).__name__}: {error}".encode())

        callback = library.Collect(called)
        self._kept.append(callback)
        if self._handle:
            self._check(self._library.cairn_on_copy(self._handle, callback, None))

    # ---- the run ----

    def restore(self, match: str = "strict", rename: Optional[Mapping[str, str]] = None, only: Sequence[str] = ()) -> Report:
        """Loads the newest valid checkpoint into the registered memory, if there is one; collective, once, before the first step.

        match   which differences are allowed where the user gives no --checkpoint-match: "strict" (none), "allow-missing" (items that the checkpoint
                lacks stay as they are), "allow-extra" (saved items that were not added are passed over), or both by a comma
        rename  by a pattern of names in the checkpoint, the program's: {"net.*": "model.*"}; a '*' stands for any characters
        only    patterns of the names to be loaded; all other items stay as they are, and nothing else is read
        The same on all ranks. Raises `cairn.Mismatch` naming every difference that is not allowed. After an exception no rank may run on: the memory
        may be partly overwritten.
        """
        if not self._handle:
            return Report()
        self._set_load(match, dict(rename or {}), list(only))
        report = library.ReportStruct(ctypes.sizeof(library.ReportStruct))
        self._check(self._library.cairn_restore(self._handle, report))
        self._world_size_saved = report.world_size_saved
        allowed = ",".join(name for name, bit in _ALLOWED.items() if report.match & bit) or "strict"
        return Report(bool(report.restored), report.step, report.label, report.world_size_saved, bool(report.finished),
                      (report.run_id or b"").decode(), allowed,
                      **self._outcome(report.difference_count) if report.restored else {})

    def _set_load(self, match: str, rename: Dict[str, str], only: List[str]) -> None:
        modes = [] if match == "strict" else match.split(",")
        if not set(modes) <= set(_ALLOWED):
            raise errors.Invalid(f'match="{match}": strict, or a comma-separated list of {", ".join(_ALLOWED)}')
        renames = (library.RenameStruct * max(len(rename), 1))(*((saved.encode(), name.encode()) for saved, name in rename.items()))
        patterns = (ctypes.c_char_p * max(len(only), 1))(*(pattern.encode() for pattern in only))
        self._check(self._library.cairn_set_load(self._handle, library.LoadOptions(
            ctypes.sizeof(library.LoadOptions), sum(_ALLOWED[mode] for mode in modes), len(rename), renames, len(only), patterns)))

    def _outcome(self, count: int) -> Dict[str, Any]:
        found: Dict[str, List[str]] = {kind: [] for kind in _KINDS[1:]}
        renamed = {}
        for i in range(count):
            difference = library.DifferenceStruct(ctypes.sizeof(library.DifferenceStruct))
            self._check(self._library.cairn_restored_difference(self._handle, i, difference))
            name, saved = difference.name.decode(), difference.saved_name.decode()
            if difference.kind == _RENAMED:
                renamed[saved] = name
            else:
                found[_KINDS[difference.kind]].append(name or saved)
        kept = {name for kind in ("missing", "reset", "left") for name in found[kind]}
        return {"loaded": tuple(name for name in self._items if name not in kept), "renamed": renamed,
                **{kind: tuple(names) for kind, names in found.items()}}

    def saved_blobs(self, name: str) -> List[bytes]:
        """After `restore`: what each rank of the life that saved had in a blob of Policy.MERGE."""
        out = []
        for member in range(self._world_size_saved if self._handle else 0):
            data, size = ctypes.c_void_p(), ctypes.c_size_t()
            self._check(self._library.cairn_saved_blob(self._handle, name.encode(), member, ctypes.byref(data), ctypes.byref(size)))
            out.append(ctypes.string_at(data, size.value) if size.value else b"")
        return out

    def step(self, label: int = 0) -> None:
        """A boundary: the state is consistent here. Costs a microsecond unless a save is due at it."""
        if self._handle:
            self._step(self._handle, label)

    def fence(self) -> None:
        """Waits until what `step` has left to be copied is copied: before the first change of an array that was added with fence=True. Returns at once
        when nothing is left."""
        if self._handle:
            self._library.cairn_fence(self._handle)

    def set_stream(self, device: int, stream: int) -> None:
        """Says on which stream (its handle as a number; 0: the legacy default stream) the program works with its memory of a CUDA device. Copies come
        after what is queued there."""
        if self._handle:
            self._check(self._library.cairn_set_stream(self._handle, device, stream))

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

    def metric(self, name: str, value: float) -> None:
        """Says what was measured, for every checkpoint from the next boundary on; one rank is enough. See `--checkpoint-keep=best=…`."""
        if self._handle:
            self._check(self._library.cairn_metric(self._handle, name.encode(), value))

    def save(self, tag: Optional[str] = None, metrics: Optional[Mapping[str, float]] = None) -> None:
        """Asks for a save at one of the next boundaries; one rank is enough. A tagged checkpoint is never pruned.

        metrics  what was measured of this state, as by `metric`
        """
        for name, value in (metrics or {}).items():
            self.metric(name, value)
        if self._handle:
            self._check(self._library.cairn_save(self._handle, None if tag is None else tag.encode()))

    def wait(self, timeout: Optional[float] = None) -> None:
        """Waits until every save that was asked for has ended; collective, at one boundary. `timeout` in seconds; raises `cairn.Timeout`."""
        if self._handle:
            self._check(self._library.cairn_wait(self._handle, -1 if timeout is None else int(timeout * 1000)))

    def finalize(self) -> None:
        """Ends the session; collective: a last save, durable, and the run is recorded as finished. The session is a no-op afterwards.

        In a job that is ending, whose final save has been made, a program that ignores SIGTERM may still come here: nothing is saved then, and nothing is raised.
        """
        if self._handle:
            self._check(self._library.cairn_finalize(ctypes.byref(self._handle)))
            self._kept.clear()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, kind, *_) -> None:
        if kind is None:
            self.finalize()


class Table:
    """Rows that are saved with the state.

    rows   the array; another one after `Session.restore`, where it has grown
    count  how many of its rows count
    """

    def __init__(self, rows: Any, count: int, grow: Optional[Callable[[int], Any]], owner: Optional[Callable[[bytes, int], int]]):
        self.rows = rows
        self._count = ctypes.c_int64(count)
        capacity, row_bytes, address = memory.rows_of(rows)

        def more(wanted, _):
            try:
                self.rows = grow(wanted[0])
                wanted[0], _, address = memory.rows_of(self.rows)
                return address
            except Exception:  # nothing may pass through the C code that calls
                traceback.print_exc(file=sys.stderr)
                return None

        def whose(row, world_size, _):
            try:
                return owner(ctypes.string_at(row, row_bytes), world_size)
            except Exception:
                traceback.print_exc(file=sys.stderr)
                return -1

        self.struct = library.TableStruct(ctypes.sizeof(library.TableStruct), row_bytes, capacity, ctypes.pointer(self._count), address,
                                          library.Grow(more if grow else 0), library.Owner(whose if owner else 0), None)

    @property
    def count(self) -> int:
        return self._count.value

    @count.setter
    def count(self, value: int) -> None:
        self._count.value = value


class Blob:
    """Bytes that are saved with the state. What was restored is in `value` after `Session.restore`."""

    def __init__(self, name: str, capacity: int):
        self.name = name
        self.capacity = capacity
        self.buffer = ctypes.create_string_buffer(capacity)
        self.size = ctypes.c_size_t(0)

    @property
    def value(self) -> bytes:
        return self.buffer.raw[:self.size.value]

    @value.setter
    def value(self, data: bytes) -> None:
        if len(data) > self.capacity:
            raise errors.Invalid(f'blob "{self.name}": {len(data)} bytes, and at most {self.capacity} fit')
        ctypes.memmove(self.buffer, data, len(data))
        self.size.value = len(data)
