"""Which of the ranks this one is, and whether it has what rank 0 has."""
import hashlib
from typing import Any, Optional, Tuple

import torch

from cairn.torch import codec

_compared = 0  # number of comparisons with rank 0: the same on all ranks


def rank_and_size() -> Tuple[Optional[int], Optional[int]]:
    """As torch.distributed knows them; None where it is not in use, and Slurm's count."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return None, None


def differs_from_rank_0(what: Any) -> bool:
    """Whether this rank has something else than rank 0; false where there is no process group. Not collective, but rank 0 has to come here too."""
    global _compared
    if None in rank_and_size():
        return False
    _compared += 1
    store, key = torch.distributed.distributed_c10d._get_default_store(), f"cairn/compared/{_compared}"
    mine = hashlib.sha256(codec.encode(what)).hexdigest()
    if torch.distributed.get_rank() == 0:
        store.set(key, mine)
    return store.get(key).decode() != mine
