"""Lightning's Trainer, saved and resumed by a callback. Needs lightning 2.

    trainer = lightning.Trainer(max_epochs=10, callbacks=[cairn.lightning.Callback()])
    trainer.fit(model, loader)

The end of each step of the optimizer is the boundary. Checkpoints of Lightning's own are not needed for it (`enable_checkpointing=False`).
"""
from typing import Any, Dict, Iterator, Optional

import lightning.pytorch

import cairn.torch
from cairn.errors import Mismatch


class Callback(lightning.pytorch.Callback):
    """Attaches the module, its optimizers and schedulers and the place in the data, restores them, and finalizes the run when `fit` is through.

    run      the handle (`cairn.torch.Run`), from `on_fit_start` on
    options  of `cairn.torch.attach`: match, rename, name, extra
    """

    def __init__(self, **options: Any):
        self.run: Optional[cairn.torch.Run] = None
        self._options = options

    def on_fit_start(self, trainer, pl_module):
        optimizers = trainer.optimizers[0] if len(trainer.optimizers) == 1 else trainer.optimizers
        extra = {**self._options.get("extra", {}), "loops": _Loops(trainer)}
        self.run = cairn.torch.attach(trainer.model, optimizers, [config.scheduler for config in trainer.lr_scheduler_configs],
                                      scaler=getattr(trainer.precision_plugin, "scaler", None), **{**self._options, "extra": extra})

    def on_train_start(self, trainer, pl_module):
        if not self.run.restored:
            return
        fetcher, progress = trainer.fit_loop._data_fetcher, trainer.fit_loop.epoch_loop.batch_progress
        if progress.is_last_batch:  # the next epoch's batches, of which Lightning has begun already, draw on the generators
            self.run.reset_generators()
            iter(fetcher)
        else:
            fetcher.iterator = self._rest(fetcher.iterator, progress.current.ready)

    def _rest(self, batches: Iterator[Any], used: int) -> Iterator[Any]:
        """Passes over what was used as the first batch is asked for: after `on_train_start` the samplers are told the epoch."""
        for _ in range(used):
            next(batches)
        self.run.reset_generators()
        yield from iter(lambda: next(batches), None)  # its next alone: an iter(batches) would begin anew

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if not trainer.fit_loop._should_accumulate():
            self.run.step()

    def on_train_end(self, trainer, pl_module):
        self.run.finalize()


class _Loops:
    """How far Lightning's loops are. They count batches of one rank, so the number of ranks must remain what it was."""

    def __init__(self, trainer: lightning.pytorch.Trainer):
        self._trainer = trainer

    def state_dict(self) -> Dict[str, Any]:
        loops = self._trainer.fit_loop.state_dict()
        loops["state_dict"].pop("combined_loader", None)  # of this rank alone; what was used is passed over instead
        return {"world_size": self._trainer.world_size, "loops": loops}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        if state["world_size"] != self._trainer.world_size:
            raise Mismatch(f"{self._trainer.world_size} ranks instead of {state['world_size']}: Lightning counts batches of one rank, and they would mean "
                           "another place in the data")
        self._trainer.fit_loop.load_state_dict(state["loops"])
