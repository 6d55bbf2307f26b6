"""Lightning's Trainer, saved and resumed by a callback. Needs lightning 2.

    trainer = lightning.Trainer(max_epochs=10, callbacks=[cairn.lightning.Callback()])
    trainer.fit(model, loader)

The end of each step of the optimizer is the boundary, and in validations a save may be made at any moment. What was due after the step that was saved
(validation, schedulers, the end of an epoch) is done when the run goes on. Checkpoints of Lightning's own are not needed for it
(`enable_checkpointing=False`); one that `fit` is given, or finds, counts until the run has saved itself.
"""
import contextlib
import sys
from typing import Any, Dict, Optional

import lightning.pytorch

import cairn.torch
from cairn.errors import Invalid, Mismatch
from cairn.torch import trainers


class Callback(lightning.pytorch.Callback):
    """Attaches the module, its optimizers and schedulers and the place in the data, restores them, and finalizes the run when `fit` is through.

    run      the handle (`cairn.torch.Run`), from `on_train_start` on
    options  of `cairn.torch.attach`: match, rename, name, extra
    """

    def __init__(self, **options: Any):
        self.run: Optional[cairn.torch.Run] = None
        self._options = options

    def on_fit_start(self, trainer, pl_module):
        """Lightning goes on to load a checkpoint of its own, if it has one: what Cairn restores comes after that, right before the loop."""
        fit_loop = trainer.fit_loop
        trainers.need("lightning 2.6", lightning.__version__, (fit_loop, ("run", "restarting", "_restarting", "_should_accumulate", "_data_fetcher")),
                      (fit_loop.epoch_loop, ("advance", "batch_progress")), (fit_loop.epoch_loop.val_loop, ("run", "restarting")),
                      (trainer._logger_connector, ("_callback_metrics",)))
        vars(fit_loop).pop("run", None)
        fit = fit_loop.run

        def run():
            del fit_loop.run
            loops = self._attach(trainer)
            if not self.run.report.finished:
                if loops.restored:
                    self._go_on(trainer)
                with self._quiet_validation(trainer):
                    fit()
            self.run.finalize()

        fit_loop.run = run

    def _attach(self, trainer) -> "_Loops":
        optimizers = trainer.optimizers[0] if len(trainer.optimizers) == 1 else trainer.optimizers
        loops = _Loops(trainer)
        self.run = trainers.attach(trainer.model, optimizers, scheduler=[config.scheduler for config in trainer.lr_scheduler_configs],
                                   scaler=getattr(trainer.precision_plugin, "scaler", None),
                                   **{**self._options, "extra": {**self._options.get("extra", {}), "loops": loops}})
        if loops.restored and trainer.ckpt_path and trainer.is_global_zero:
            print(f"cairn: the run goes on from its own checkpoint of step {self.run.steps_done}, not from Lightning's {trainer.ckpt_path}", file=sys.stderr)
        return loops

    def _go_on(self, trainer) -> None:
        """Has Lightning enter its loop in the middle of the iteration that was saved, with what comes after the step."""
        fit_loop, epoch_loop = trainer.fit_loop, trainer.fit_loop.epoch_loop

        def advance(fetcher):
            del epoch_loop.advance
            fit_loop._restarting = epoch_loop.val_loop.restarting = False
            if not epoch_loop.batch_progress.is_last_batch:
                self._pass_over(fetcher, epoch_loop.batch_progress.current.ready)
            self.run.reset_generators()

        if fit_loop.epoch_progress.current.processed < fit_loop.epoch_progress.current.started:
            epoch_loop.advance = advance

    def _pass_over(self, fetcher, used: int) -> None:
        """Begins the data anew, since only now the samplers know the epoch."""
        iter(fetcher)
        for batch in range(used):
            try:
                next(fetcher)
            except StopIteration:
                raise Mismatch(f"{used} batches of this epoch were used, and the data has only {batch} now") from None

    @contextlib.contextmanager
    def _quiet_validation(self, trainer):
        """A save between two steps of the optimizer would lack the gradients: then there is none."""
        val_loop = trainer.fit_loop.epoch_loop.val_loop
        validate = val_loop.run

        def run():
            with contextlib.nullcontext() if trainer.fit_loop._should_accumulate() else self.run.quiet():
                return validate()

        val_loop.run = run
        try:
            yield
        finally:
            del val_loop.run

    def on_train_start(self, trainer, pl_module):
        if self.run.protected and not hasattr(trainer.fit_loop._data_fetcher, "batches"):
            raise Invalid("a training_step that takes dataloader_iter fetches by itself, so the place in the data is not known: take batch instead")

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if not trainer.fit_loop._should_accumulate():
            self.run.step()


class _Loops:
    """How far Lightning's loops are, what was measured last, and the state of callbacks. They count batches of one rank: on another number of ranks the
    counts are others, for as many batches in a step of the optimizer."""

    def __init__(self, trainer: lightning.pytorch.Trainer):
        self._trainer = trainer
        self.restored = False

    def state_dict(self) -> Dict[str, Any]:
        loops = self._trainer.fit_loop.state_dict()
        loops["state_dict"].pop("combined_loader", None)  # of this rank alone; what was used is passed over instead
        for count in ("total", "current"):  # the batch is through: Lightning counts it a little later
            progress = loops["epoch_loop.batch_progress"][count]
            progress["completed"] = progress["processed"]
        callbacks = {callback.state_key: callback.state_dict() for callback in self._trainer.callbacks}
        return {"world_size": self._trainer.world_size, "accumulated": self._trainer.accumulate_grad_batches, "loops": loops,
                "callbacks": {key: state for key, state in callbacks.items() if state},
                "metrics": dict(self._trainer._logger_connector._callback_metrics)}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        before, now, accumulated = state["world_size"], self._trainer.world_size, self._trainer.accumulate_grad_batches
        if before != now:
            if before * state["accumulated"] != now * accumulated:
                raise Mismatch(f"a step took {state['accumulated']} batches of each of {before} ranks, and would take {accumulated} of each of {now} now: set "
                               "accumulate_grad_batches, and the loader's batch_size, so that it takes as many samples as before")
            for count in ("total", "current"):
                progress = state["loops"]["epoch_loop.batch_progress"][count]
                progress.update({name: -(-number * before // now) for name, number in progress.items()})  # of an epoch's last step, which may be short, more
        self._trainer.fit_loop.load_state_dict(state["loops"])
        for callback in self._trainer.callbacks:
            if callback.state_key in state["callbacks"]:
                callback.load_state_dict(state["callbacks"][callback.state_key])
        self._trainer._logger_connector._callback_metrics.update(state["metrics"])
        self.restored = True
