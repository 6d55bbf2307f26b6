"""torch.distributed.checkpoint (DCP) with Cairn's checkpoints: a program that uses it switches by one argument.

    dcp.save(state, storage_writer=cairn.torch.dcp.StorageWriter("/scratch/me/run7"))
    dcp.load(state, storage_reader=cairn.torch.dcp.StorageReader("/scratch/me/run7"))

A directory holds all checkpoints of a run, by step. Planners are PyTorch's. With or without a process group, and without srun:

  1. Every rank plans; PyTorch gathers the plans on the coordinator, which has queued up before (set_up_storage_writer).
  2. The coordinator owns the directory (cairn.writer). When the saves before have ended, in the order in which they queued up, it begins a checkpoint,
     and sends its folder with the plans (prepare_global_plan).
  3. Every rank writes its boxes into files of its own, and returns what the index has to know of them (write_data).
  4. The coordinator commits (finish). A rank that fails leaves an attempt without a manifest: no checkpoint.

So saves of one directory come one after the other, and no rank but the coordinator waits for a turn: whatever the order in which the saves' threads run on
the ranks, there is no circle. As everywhere in PyTorch, saves that overlap need process groups of their own.

What is no tensor is stored by a codec (cairn.torch.codec unless another is given), never as pickle: the bytes that PyTorch's planners make and take are
unpacked and made anew on this side.
"""
import dataclasses
import io
import multiprocessing
import os
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import torch
from torch.distributed import checkpoint as torch_dcp
from torch.distributed.checkpoint._nested_dict import flatten_state_dict
from torch.distributed.checkpoint.metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorProperties, TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem, WriteItemType
from torch.distributed.checkpoint.state_dict_saver import _save_state_dict
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from cairn.checkpoint import Checkpoint
from cairn.errors import Error, Invalid
from cairn.memory import Piece
from cairn.torch import codec as default_codec
from cairn.torch.load import TYPES, read_box
from cairn.torch.placement import DTYPES
from cairn.torch.run import VALUES
from cairn.writer import Box, Writer, write_boxes

_BLOB = "torch.dcp"  # {"values": encoded by name, "planner_data": paths by name}
_lock = threading.Lock()
_writers: Dict[str, Writer] = {}  # by directory: owned until the interpreter ends, as the life of a job owns it
_queues: Dict[str, List[int]] = {}  # by directory: the threads whose saves have queued up and have not finished; they may have failed


def _writer(directory: str) -> Writer:
    with _lock:
        if directory not in _writers:
            _writers[directory] = Writer(directory)
        return _writers[directory]


def _leave_when_ended(directory: str) -> None:
    """async_save's own process (AsyncCheckpointerType.PROCESS) is a daemon, which is killed at the end and could not give the directory back then: so it does
    after each save. `finish` leaves before the program knows of the end; DCP calls nothing at the end of a save that failed, so that is looked for."""
    thread = threading.get_ident()

    def leave() -> None:
        while not _left(directory, lambda: not _saves(thread)):
            time.sleep(0.01)

    if multiprocessing.current_process().daemon:
        threading.Thread(target=leave, daemon=True).start()


def _left(directory: str, if_so: Callable[[], bool]) -> bool:
    """Gives the directory back, if so: a save that begins meanwhile has it to itself, or anew."""
    with _lock:
        if if_so() and directory in _writers:
            _writers.pop(directory).close()
        return directory not in _writers


def _queue_up(directory: str) -> None:
    _leave_queues()  # if its last save has failed
    with _lock:
        _queues.setdefault(directory, []).append(threading.get_ident())


def _leave_queues() -> None:
    with _lock:
        for queue in _queues.values():
            if threading.get_ident() in queue:
                queue.remove(threading.get_ident())


def _wait_for_turn(directory: str) -> None:
    """Until this thread is the first of its queue. DCP calls nothing at the end of a save that failed, so the threads of those before are looked at."""
    while True:
        with _lock:
            queue = _queues[directory]
            while queue[0] != threading.get_ident() and not _saves(queue[0]):
                queue.pop(0)
            if queue[0] == threading.get_ident():
                return
        time.sleep(0.01)


def _saves(thread: int) -> bool:
    frame = sys._current_frames().get(thread)
    while frame is not None and frame.f_code is not _save_state_dict.__code__:
        frame = frame.f_back
    return frame is not None


class PlainCodec:
    """cairn.torch.codec, as an object that can be sent to another process."""

    encode = staticmethod(default_codec.encode)
    decode = staticmethod(default_codec.decode)


def _named(checkpoint_id: Union[str, os.PathLike]) -> Tuple[str, Optional[int], Optional[str]]:
    """Directory, step and tag of DIR, DIR@STEP or DIR@TAG; the directory as an absolute path. An @ before a / is part of the path."""
    if os.fspath(checkpoint_id).startswith("s3://"):
        raise Invalid(f'"{checkpoint_id}": a directory is needed; in a bucket only sessions save')
    text = os.path.abspath(checkpoint_id)
    directory, at, which = text.rpartition("@")
    if not at or "/" in which or os.path.isdir(text):
        return text, None, None
    if directory.endswith("/") or not which:
        raise Invalid(f'"{text}": DIR, DIR@STEP or DIR@TAG')
    return (directory, int(which), None) if which.isdecimal() else (directory, None, which)


def _done(value: Any) -> Future:
    future: Future = Future()
    future.set_result(value)
    return future


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where a rank writes: the attempt's folder, and its position among the plans, of which there are `world_size`."""

    folder: str
    rank: int
    world_size: int


@dataclasses.dataclass(frozen=True)
class _Begun:
    """What the coordinator has begun, and what the save is to be called; `given` and `named` as StorageWriter's."""

    directory: str
    writer: Writer
    folder: str
    tag: Optional[str]
    keep: Optional[str]
    given: Tuple[Optional[int], Optional[str]]
    named: Tuple[Optional[int], Optional[str]]


class StorageWriter(torch_dcp.StorageWriter):
    """Saves a checkpoint into a run's directory, which is made if it is not there.

    directory  the run's; DIR@STEP and DIR@TAG name step or tag as well, here and in DCP's checkpoint_id, before `step` and `tag`
    step       of the next save; None: one past the newest. A step of the past begins another branch (cairn.writer.Writer.begin)
    tag        of the next save: a name that keeps it from being pruned
    keep       None: nothing is pruned. Else as --checkpoint-keep: "last=2,every=5000steps"
    codec      for what is no tensor: has encode(value, where) -> bytes and decode(bytes) -> value
    `dcp.async_save` works too, on threads and in a process of its own; there each save needs another StorageWriter. A save of a directory waits for the one
    before. Raises, within DCP's CheckpointException, `cairn.Busy` when a job or another process owns the directory, and TypeError naming what cannot be saved.
    """

    def __init__(self, directory: Union[str, os.PathLike], step: Optional[int] = None, tag: Optional[str] = None, keep: Optional[str] = None,
                 codec: Any = PlainCodec):
        self._given = (step, tag)
        self.keep, self.codec = keep, codec
        # By thread: a save queues up, prepares and finishes on the same one, and two may be under way.
        self._queued: Dict[int, Tuple[str, Tuple[Optional[int], Optional[str]]]] = {}  # directory, and what its path has named
        self._begun: Dict[int, _Begun] = {}
        self.reset(directory)

    def reset(self, checkpoint_id: Union[None, str, os.PathLike] = None) -> None:
        if checkpoint_id is not None:
            self.checkpoint_id = checkpoint_id
            self.directory, *named = _named(checkpoint_id)
            self._named = tuple(named)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("use_collectives") is False:
            raise Invalid("use_collectives=False: each rank would commit a checkpoint of its own. Leave it out")
        if is_coordinator:
            directory = os.path.realpath(self.directory)
            _queue_up(directory)
            self._queued[threading.get_ident()] = directory, self._named

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        for item in plan.items:
            if item.tensor_data is not None and item.tensor_data.properties.dtype not in DTYPES:
                raise TypeError(f"{item.index.fqn} is of {item.tensor_data.properties.dtype}, which Cairn does not save")
        return plan

    def prepare_global_plan(self, plans: List[SavePlan]) -> List[SavePlan]:
        if not all(getattr(plan, "usable", True) for plan in plans):
            raise Invalid("the planner has enable_plan_caching, and hands out plans of an earlier save: leave it out, they are quickly made")
        directory, named = self._queued.pop(threading.get_ident())
        _wait_for_turn(directory)
        given, writer = self._given, _writer(directory)
        _leave_when_ended(directory)
        step, tag = (one if one is not None else other for one, other in zip(named, given))
        folder = writer.begin(step)
        self._begun[threading.get_ident()] = _Begun(directory, writer, folder, tag, self.keep, given, named)
        return [dataclasses.replace(plan, storage_data=_Place(folder, rank, len(plans))) for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future:
        place: _Place = plan.storage_data
        results = []
        for item in plan.items:
            if item.type == WriteItemType.BYTE_IO:
                data = self._encoded(item, planner)
                results.append(WriteResult(item.index, len(data), data))
        for j, items in enumerate(_files(plan.items)):
            record = _write_file(place.folder, 1 + place.rank + j * place.world_size, items, planner)
            for item in items:
                size = item.tensor_data.chunk.sizes.numel() * item.tensor_data.properties.dtype.itemsize
                results.append(WriteResult(item.index, size, _Record(record) if item is items[0] else None))
        return _done(results)

    def _encoded(self, item: WriteItem, planner: SavePlanner) -> bytes:
        """The planner's bytes are what torch.save has just made of a value in this process."""
        data = planner.resolve_data(item)
        data.seek(0)
        return self.codec.encode(torch.load(data, map_location="cpu", weights_only=False), item.index.fqn)

    def finish(self, metadata: Metadata, results: List[List[WriteResult]]) -> None:
        everything = [result for of_rank in results for result in of_rank]
        beside = {"values": {result.index.fqn: result.storage_data for result in everything if isinstance(result.storage_data, bytes)},
                  "planner_data": metadata.planner_data}
        begun = self._begun.pop(threading.get_ident())
        begun.writer.commit(begun.folder, [result.storage_data.data for result in everything if isinstance(result.storage_data, _Record)],
                            {_BLOB: default_codec.encode(beside, "the planner's data")}, len(results), begun.tag, begun.keep)
        if self._given is begun.given:
            self._given = (None, None)
        if self._named is begun.named:  # else the next save has been named meanwhile
            self._named = (None, None)
        if multiprocessing.current_process().daemon:
            _left(begun.directory, lambda: True)
        _leave_queues()

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Union[str, os.PathLike]) -> bool:
        return "://" not in os.fspath(checkpoint_id)


@dataclasses.dataclass(frozen=True)
class _Record:
    data: bytes  # of cairn.writer.write_boxes


def _files(items: List[WriteItem]) -> List[List[WriteItem]]:
    """The tensors of a rank, by file: an array's j-th box goes into the j-th one."""
    files: List[List[WriteItem]] = []
    count: Dict[str, int] = {}
    for item in items:
        if item.type == WriteItemType.BYTE_IO:
            continue
        j = count[item.index.fqn] = count.get(item.index.fqn, -1) + 1
        if j == len(files):
            files.append([])
        files[j].append(item)
    return files


def _write_file(folder: str, number: int, items: List[WriteItem], planner: SavePlanner) -> bytes:
    kept = None  # what is being written: in CPU memory is one tensor at a time besides the program's own

    def address(i: int) -> int:
        nonlocal kept
        data = items[i].tensor_data
        kept = planner.resolve_data(items[i]).detach().cpu().contiguous().resolve_conj().resolve_neg()
        if kept.dtype != data.properties.dtype or kept.shape != data.chunk.sizes:
            raise Invalid(f"{items[i].index.fqn}: planned were {data.properties.dtype} {list(data.chunk.sizes)}, the planner gave {kept.dtype} "
                          f"{list(kept.shape)}")
        return kept.data_ptr()

    return write_boxes(folder, number, [Box(item.index.fqn, DTYPES[item.tensor_data.properties.dtype], tuple(item.tensor_data.size),
                                            tuple(item.tensor_data.chunk.offsets), tuple(item.tensor_data.chunk.sizes)) for item in items], address)


class StorageReader(torch_dcp.StorageReader):
    """Loads any checkpoint of Cairn: of `StorageWriter`, and of a run that was attached (`cairn.torch.attach`).

    directory  DIR: the newest that a restart would take; DIR@STEP, DIR@TAG
    codec      as StorageWriter's
    Each rank reads what it holds, as it is laid out now, and compares every block with its checksum. In a checkpoint of an attached run,
    `model.…` and `optim.state.…` are what `torch.distributed.checkpoint.state_dict` calls them, and so are `optim.param_groups.…`.
    """

    def __init__(self, directory: Union[str, os.PathLike], codec: Any = PlainCodec):
        self.codec = codec
        self._checkpoint: Optional[Checkpoint] = None
        self.reset(directory)

    def reset(self, checkpoint_id: Union[None, str, os.PathLike] = None) -> None:
        if checkpoint_id is not None:
            self.checkpoint_id = checkpoint_id

    def read_metadata(self) -> Metadata:
        self._close()
        self._checkpoint = Checkpoint(self.checkpoint_id)
        self._values, planner_data = _values_of(self._checkpoint, self.codec)
        known: Dict[str, Any] = {name: BytesStorageMetadata() for name in self._values}
        for name, saved in self._checkpoint.arrays.items():
            shape = torch.Size(saved.shape)
            whole = ChunkStorageMetadata(torch.Size([0] * len(shape)), shape)
            known[name] = TensorStorageMetadata(TensorProperties(dtype=TYPES[saved.dtype]), shape, [whole])
        return Metadata(known, {name: planner_data.get(name, (name,)) for name in known})

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        pass

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return dataclasses.replace(plan, storage_data=self._checkpoint.path)

    def prepare_global_plan(self, plans: List[LoadPlan]) -> List[LoadPlan]:
        found = sorted({plan.storage_data for plan in plans})
        if len(found) > 1:
            raise Error(f"ranks have found different newest checkpoints, {' and '.join(found)}: one was saved meanwhile. Name the step: DIR@STEP")
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future:
        for item in plan.items:
            if item.type == LoadItemType.BYTE_IO:
                value = io.BytesIO()
                torch.save(self._values[item.storage_index.fqn](), value)
                value.seek(0)
                planner.load_bytes(item, value)
            else:
                self._read_tensor(item, planner)
        self._close()
        return _done(None)

    def _read_tensor(self, item: ReadItem, planner: LoadPlanner) -> None:
        name = item.storage_index.fqn
        saved = self._checkpoint.arrays[name]
        target = planner.resolve_tensor(item).detach()
        if target.shape != item.lengths:
            raise Invalid(f"{name}: planned were {list(item.lengths)} elements, the planner gave {list(target.shape)}")
        if target.device.type == "cpu" and target.is_contiguous() and target.dtype == TYPES[saved.dtype] and not saved.fortran:
            self._checkpoint.read(name, target.data_ptr(), target.numel() * target.element_size(), item.storage_offsets, item.lengths)
        else:
            target.copy_(read_box(self._checkpoint, name, Piece(tuple(item.storage_offsets), tuple(item.lengths), 0)))
        planner.commit_tensor(item, target)

    def _close(self) -> None:
        if self._checkpoint is not None:
            self._checkpoint.close()
            self._checkpoint = None

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Union[str, os.PathLike]) -> bool:
        return "://" not in os.fspath(checkpoint_id)


def _values_of(checkpoint: Checkpoint, codec: Any):
    """What is no array: by name what gives the value, and by name its path in nested dicts and lists, as PyTorch's planners want it."""
    beside = checkpoint.blob(_BLOB)
    if beside is not None:
        beside = default_codec.decode(beside)
        return {name: lambda data=data: codec.decode(data) for name, data in beside["values"].items()}, beside["planner_data"] or {}
    values, paths = flatten_state_dict(_of_attached(checkpoint))
    return {name: lambda value=value: value for name, value in values.items()}, paths


def _of_attached(checkpoint: Checkpoint) -> Dict[str, Any]:
    """What `attach` has saved of optimizers, schedulers and the rest, as their state dicts by parameter name."""
    blobs = [checkpoint.blob(VALUES, member) for member in range(checkpoint.world_size)]
    of_ranks = [default_codec.decode(blob) for blob in blobs if blob]
    state: Dict[str, Any] = {}
    for of_rank in of_ranks:
        state.update(of_rank.get("plain", {}))
        for name, optimizer in of_rank["optimizers"].items():
            own = state.setdefault(name, {"state": {}, "param_groups": []})
            own["state"].update(optimizer["scalars"])
            own["param_groups"] += [{"params": group["of"], **{key: value for key, value in group.items() if key != "of"}}
                                    for group in optimizer["groups"]]
    return state
