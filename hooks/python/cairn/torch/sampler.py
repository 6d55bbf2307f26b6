"""ElasticSampler: the place in the data as a number of samples, which means the same on any number of ranks.

An epoch is an order of all samples, the same for every number of ranks. Each step of the optimizer takes the next `global_batch` of them, cut into one
piece for each rank and accumulation step. What follows a place depends on nothing but the place: each sample is used once an epoch, however often
the number of ranks changes on the way.
"""
from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch

from cairn.errors import Invalid, Mismatch

POLICIES = ("keep-global", "scale", "refuse")


class ElasticSampler(torch.utils.data.Sampler):
    """A batch sampler: ``DataLoader(data, batch_sampler=ElasticSampler(len(data), batch_size=32))``, given to `attach` as `loader`.

    length        samples in the data
    batch_size    what one rank takes at once, at most (one more in the last step of an epoch, see below)
    shuffle, seed the order of an epoch depends on seed and epoch alone
    batch_policy  what becomes of the global batch on another number of ranks. "keep-global": it stays what it was in the run's first life, by
                  accumulation (`Run.accumulation_steps`); "scale": it is batch_size times the ranks; "refuse": the run is not resumed there
    rank, world_size  None: as torch.distributed knows them, else one of one

    The last step of an epoch takes what is left: less than a global batch, or up to a sample a rank more, so that no rank is without one. Only where
    fewer samples are left than there are ranks are some of them used twice.
    """

    def __init__(self, length: int, batch_size: int, *, shuffle: bool = True, seed: int = 0, batch_policy: str = "keep-global",
                 rank: Optional[int] = None, world_size: Optional[int] = None):
        if length < 1 or batch_size < 1:
            raise Invalid(f"{length} samples in batches of {batch_size}: both must be at least 1")
        if batch_policy not in POLICIES:
            raise Invalid(f'batch_policy="{batch_policy}": one of {", ".join(POLICIES)}')
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        self.rank = rank if rank is not None else torch.distributed.get_rank() if distributed else 0
        self.world_size = world_size or (torch.distributed.get_world_size() if distributed else 1)
        self.length, self.batch_size, self.shuffle, self.seed, self.batch_policy = length, batch_size, shuffle, seed, batch_policy
        self.global_batch = batch_size * self.world_size
        self.epoch = self.consumed = 0  #: where the run stands: samples of the epoch that were trained on, by all ranks

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    @property
    def accumulation_steps(self) -> int:
        """Pieces that a rank takes in a step, but for the last one of an epoch."""
        return -(-self.global_batch // (self.batch_size * self.world_size))

    def schedule(self) -> Iterator[Tuple[int, int, int]]:
        """Of each piece from here to the end of the epoch: its number in the step, pieces of the step, the place after the step."""
        for begin, end, pieces in self._steps():
            for piece in range(pieces):
                yield piece, pieces, end

    def __iter__(self) -> Iterator[List[int]]:
        if self.shuffle:
            order = torch.randperm(self.length, generator=torch.Generator().manual_seed(self.seed + self.epoch)).tolist()
        else:
            order = range(self.length)
        for begin, end, pieces in self._steps():
            parts = pieces * self.world_size
            for piece in range(pieces):
                part = piece * self.world_size + self.rank
                first, last = begin + (end - begin) * part // parts, begin + (end - begin) * (part + 1) // parts
                yield list(order[first:last]) or [order[begin + part % (end - begin)]]

    def __len__(self) -> int:
        return sum(pieces for _, _, pieces in self._steps())

    def _steps(self) -> Iterator[Tuple[int, int, int]]:
        """From the place on: begin and end of each step, and its pieces a rank."""
        begin = self.consumed
        while begin < self.length:
            left = self.length - begin
            end = begin + (self.global_batch if left - self.global_batch >= self.world_size else left)
            yield begin, end, max(1, min(self.accumulation_steps, (end - begin) // self.world_size))
            begin = end

    def state_dict(self) -> Dict[str, Any]:
        return {"consumed": self.consumed, "global_batch": self.global_batch, "world_size": self.world_size, "length": self.length,
                "shuffle": self.shuffle, "seed": self.seed}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Raises `cairn.Mismatch` where the data or their order are others, and where the policy does not fit the number of ranks."""
        for name in ("length", "shuffle", "seed"):
            if state[name] != getattr(self, name):
                raise Mismatch(f"the sampler's {name} was {state[name]} and is {getattr(self, name)}: the place in the data means nothing there")
        if self.batch_policy == "refuse" and state["world_size"] != self.world_size:
            raise Mismatch(f'{self.world_size} ranks instead of {state["world_size"]}, and batch_policy="refuse"')
        if self.batch_policy == "keep-global":
            if state["global_batch"] < self.world_size:
                raise Mismatch(f'a global batch of {state["global_batch"]} is not enough for {self.world_size} ranks: use fewer, or batch_policy="scale"')
            self.global_batch = state["global_batch"]
        self.consumed = state["consumed"]
