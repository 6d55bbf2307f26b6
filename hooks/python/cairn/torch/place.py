"""Place: where a loop stands in its data."""
from typing import Any, Callable, Dict, Iterable, Iterator, Optional

from cairn.errors import Invalid
from cairn.torch.sampler import ElasticSampler


class Place:
    """Epoch and batch, or, with an `ElasticSampler`, epoch and sample. A loader that keeps a place of its own (state_dict) is asked for it too.

    loader        as `attach` was given it, or None
    end_of_step   called when the batch that the loop's body had is used: `Run.step`, which comes back to `count`
    sampler       the loader's `ElasticSampler`, if it has one
    epoch         the one that the loop is in
    pieces        batches that the step under way takes on each rank
    """

    def __init__(self, loader: Optional[Iterable], end_of_step: Callable[[], None]):
        self._given = loader
        self._end_of_step = end_of_step
        self.sampler = _elastic(loader)
        self._own = loader if self.sampler is None and hasattr(loader, "state_dict") and hasattr(loader, "load_state_dict") else None
        self.epoch = self._batch = self._skip = 0
        self._replicas = 1  # ranks over which the batches that are counted are split
        self._in_body = self._counted = False
        self._piece, self.pieces, self._end = 0, 1, 0  # of the step under way, and the place after it

    @property
    def accumulating(self) -> bool:
        """Whether the step under way takes another batch after this one."""
        return self._piece + 1 < self.pieces

    # ---- the loop ----

    def epochs(self, count: int) -> Iterator[int]:
        while self.epoch < count:
            epoch = self.epoch
            yield epoch
            if self.epoch == epoch:  # the body has left `batches`, or did not go through it
                self._end_epoch()

    def batches(self, loader: Optional[Iterable]) -> Iterator[Any]:
        loader = self._given if loader is None else loader
        if loader is None:
            raise Invalid("batches: give a loader, here or to attach")
        if self.sampler is not None and _elastic(loader) is self.sampler:
            yield from self._elastic_batches(loader)
            return
        sampler = getattr(getattr(loader, "batch_sampler", None), "sampler", None) or getattr(loader, "sampler", None)
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(self.epoch)
        skip, self._skip = self._skip, 0
        replicas = getattr(sampler, "num_replicas", 1)
        self._batch, self._replicas = skip * self._replicas // replicas, replicas
        skip = 0 if loader is self._own else self._batch
        for i, batch in enumerate(loader):
            if i < skip:
                continue
            yield from self._offer(batch)
        self._end_epoch()

    def count(self) -> None:
        """At a boundary: the batch that the loop's body has, if it has one, is used."""
        if self._in_body and not self._counted and not self.accumulating:
            self._batch += 1
            self._counted = True
            if self.sampler is not None:
                self.sampler.consumed = self._end

    def _elastic_batches(self, loader: Iterable) -> Iterator[Any]:
        self.sampler.set_epoch(self.epoch)
        for (self._piece, self.pieces, self._end), batch in zip(self.sampler.schedule(), loader):
            yield from self._offer(batch)
        self._end_epoch()

    def _offer(self, batch: Any) -> Iterator[Any]:
        self._in_body, self._counted = True, False
        try:
            yield batch
            if not self._counted and not self.accumulating:
                self._end_of_step()
        finally:
            self._in_body = False

    def _end_epoch(self) -> None:
        self.epoch += 1
        self._batch = self._skip = 0
        self._piece, self.pieces = 0, 1
        if self.sampler is not None:
            self.sampler.consumed = 0

    # ---- what is saved ----

    def values(self) -> Dict[str, Any]:
        """What is the same on all ranks."""
        return {"place": (self.epoch, self._batch, self._replicas), "sampler": None if self.sampler is None else self.sampler.state_dict()}

    def own(self) -> Dict[str, Any]:
        """What is this rank's."""
        return {} if self._own is None else {"loader": self._own.state_dict()}

    def take_back(self, values: Dict[str, Any]) -> None:
        self.epoch, self._batch, self._replicas = values["place"]
        self._skip = self._batch
        if self.sampler is not None and values["sampler"] is not None:
            self.sampler.load_state_dict(values["sampler"])

    def take_back_own(self, own: Optional[Dict[str, Any]]) -> bool:
        """None: it is that of another number of ranks. False where the epoch therefore begins anew."""
        if self._own is None:
            return True
        if own is None:
            self._batch = self._skip = 0
            return False
        if "loader" in own:
            self._own.load_state_dict(own["loader"])
        return True


def _elastic(loader: Any) -> Optional[ElasticSampler]:
    sampler = getattr(loader, "batch_sampler", None)
    return sampler if isinstance(sampler, ElasticSampler) else None
