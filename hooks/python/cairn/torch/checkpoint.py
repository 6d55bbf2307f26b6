"""Checkpoints by the calls that users of SageMaker's model-parallel library know, in Cairn's directories (see cairn.torch.dcp).

    checkpoint.maybe_finalize_async_calls(blocking=True)                  # the last save's errors are raised here
    checkpoint.async_save(state, checkpoint_id="/scratch/me/run7@1200")   # returns when the state is copied
    ...
    checkpoint.load(state, checkpoint_id="/scratch/me/run7")

State dicts are those of torch.distributed.checkpoint: sharded tensors are loaded on any number of ranks, of replicas one rank writes. checkpoint_id is
DIR, DIR@STEP or DIR@TAG.
"""
import atexit
import concurrent.futures
import os
import sys
from typing import Any, Dict, Optional, Union

import torch.distributed as dist
from torch.distributed.checkpoint.planner import LoadPlanner, SavePlanner
from torch.distributed.checkpoint.staging import BlockingAsyncStager
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict  # the public ones have no coordinator_rank
from torch.distributed.checkpoint.state_dict_saver import _save_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.tensor import DTensor
from torch.utils._pytree import tree_map_only

from cairn.torch.dcp import StorageReader, StorageWriter

_thread = concurrent.futures.ThreadPoolExecutor(1, "cairn-save")
_saving: Optional[concurrent.futures.Future] = None
_groups: Dict[Any, dist.ProcessGroup] = {}


def async_save(state_dict: Dict[str, Any], *, checkpoint_id: Union[None, str, os.PathLike] = None, process_group: Optional[dist.ProcessGroup] = None,
               coordinator_rank: int = 0, storage_writer: Optional[StorageWriter] = None, planner: Optional[SavePlanner] = None) -> None:
    """Copies the state to CPU memory and returns; it is written meanwhile. Collective over `process_group` (None: all). A save that is under way is
    waited for first.

    coordinator_rank  within the group: who commits
    storage_writer    made of checkpoint_id where it is None
    The ranks speak with each other over a group of their own (gloo), so that nothing of the program's is disturbed. What went wrong is raised by
    the next call, or written to stderr where there is none.
    """
    global _saving
    maybe_finalize_async_calls(blocking=True)
    writer = _storage(StorageWriter, storage_writer, checkpoint_id)
    state = {key: _state_of(value) for key, value in state_dict.items()}
    state = tree_map_only(DTensor, lambda tensor: tensor if tensor.dim() else tensor.detach().clone(), state)  # scalars, which the stager leaves
    state = BlockingAsyncStager().stage(state)
    _saving = _thread.submit(_save_state_dict, state, writer, _own_group(process_group), coordinator_rank, not dist.is_initialized(), planner)


def maybe_finalize_async_calls(blocking: bool = False) -> bool:
    """Whether the last save has ended on this rank; with `blocking` it waits until it has. Raises, once, what went wrong with it.

    Ranks get different answers while it ends: what is collective must not hang on one of them, unless `blocking`.
    """
    global _saving
    if _saving is None:
        return True
    if not blocking and not _saving.done():
        return False
    ended, _saving = _saving, None
    ended.result()
    return True


@atexit.register
def _tell_what_nobody_asked() -> None:
    if _saving is not None and _saving.exception() is not None:
        print(f"cairn: the last asynchronous save failed: {_saving.exception()}", file=sys.stderr)


def load(state_dict: Dict[str, Any], *, checkpoint_id: Union[None, str, os.PathLike] = None, process_group: Optional[dist.ProcessGroup] = None,
         coordinator_rank: int = 0, storage_reader: Optional[StorageReader] = None, planner: Optional[LoadPlanner] = None) -> None:
    """Fills the state in place, however it is sharded now. Collective over `process_group`. Raises, within DCP's CheckpointException, what is missing."""
    reader = _storage(StorageReader, storage_reader, checkpoint_id)
    state = {key: _state_of(state_dict[key]) for key in sorted(state_dict)}
    _load_state_dict(state, reader, process_group, coordinator_rank, not dist.is_initialized(), planner)
    for key, value in state.items():
        if isinstance(state_dict[key], Stateful):
            state_dict[key].load_state_dict(value)
        else:
            state_dict[key] = value


def _state_of(value: Any) -> Any:
    return value.state_dict() if isinstance(value, Stateful) else value


def _storage(kind, given, checkpoint_id):
    if given is None and checkpoint_id is None:
        raise ValueError(f"checkpoint_id, or an object of {kind.__name__}, says where the checkpoint is")
    if given is None:
        return kind(checkpoint_id)
    given.reset(checkpoint_id)
    return given


def _own_group(process_group: Optional[dist.ProcessGroup]) -> Optional[dist.ProcessGroup]:
    if not dist.is_initialized():
        return None
    of = process_group or dist.group.WORLD  # which is another one once the program has left and joined again
    if of not in _groups:
        _groups[of] = dist.new_group(dist.get_process_group_ranks(of), backend="gloo", use_local_synchronization=True)
    return _groups[of]
