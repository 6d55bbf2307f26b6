"""Hugging Face's Trainer, saved and resumed in one line. Needs transformers 5.

    trainer = transformers.Trainer(model, arguments, train_dataset=data)
    cairn.transformers.attach(trainer)
    trainer.train()

The end of each step is the boundary. Checkpoints of the Trainer's own are not needed for it (`save_strategy="no"`).
"""
from typing import Any, Dict

import transformers

import cairn.torch
from cairn.errors import Mismatch

_PROGRESS = ("global_step", "epoch", "num_input_tokens_seen", "total_flos", "best_metric", "best_global_step", "best_model_checkpoint")


def attach(trainer: transformers.Trainer, **options: Any) -> None:
    """Has `trainer.train` attach its model, optimizer, scheduler and place in the data, restore them, and finalize the run at its end. Once a trainer.

    options  of `cairn.torch.attach`: match, rename, name, extra
    """
    if not hasattr(trainer, "_run_epoch"):
        raise ImportError(f"cairn.transformers needs transformers 5, and this is {transformers.__version__}")
    trainer.add_callback(_Callback(trainer, options))


class _Callback(transformers.TrainerCallback):
    def __init__(self, trainer: transformers.Trainer, options: Dict[str, Any]):
        self._trainer, self._options = trainer, options

    def on_train_begin(self, args, state, control, **_):
        trainer = self._trainer
        optimizer = getattr(trainer.optimizer, "optimizer", trainer.optimizer)  # inside of accelerate's
        extra = {**self._options.get("extra", {}), "trainer": _Progress(trainer)}
        self._run = cairn.torch.attach(trainer.model_wrapped, optimizer, trainer.lr_scheduler, scaler=trainer.accelerator.scaler,
                                       **{**self._options, "extra": extra})
        if self._run.restored:
            self._go_on(state.global_step)

    def _go_on(self, step: int) -> None:
        """The Trainer has looked for where to begin before its callbacks are called: from here on it is told the same as by a checkpoint of its own."""
        trainer = self._trainer
        trainer._initial_global_step = trainer._globalstep_last_logged = step
        run_epoch = trainer._run_epoch

        def run_rest(*, epoch, num_update_steps_per_epoch, **rest):
            first, steps = divmod(step, num_update_steps_per_epoch)
            if epoch == first:
                rest |= {"resume_from_checkpoint": "", "epochs_trained": first,
                         "steps_trained_in_current_epoch": steps * trainer.args.gradient_accumulation_steps}
            if epoch >= first:
                run_epoch(epoch=epoch, num_update_steps_per_epoch=num_update_steps_per_epoch, **rest)

        trainer._run_epoch = run_rest
        trainer._load_rng_state = lambda _: self._run.reset_generators()  # called when the batches that were used have been passed over

    def on_step_end(self, args, state, control, **_):
        self._run.step()

    def on_train_end(self, args, state, control, **_):
        self._run.finalize()
        for name in ("_run_epoch", "_load_rng_state"):
            vars(self._trainer).pop(name, None)


class _Progress:
    """How far a Trainer is. It counts in steps, so a step must remain what it was."""

    def __init__(self, trainer: transformers.Trainer):
        self._trainer = trainer

    def state_dict(self) -> Dict[str, Any]:
        return {"batch": self._batch(), **{name: getattr(self._trainer.state, name) for name in _PROGRESS}}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        if state["batch"] != self._batch():
            raise Mismatch(f"a step took {state['batch']} samples, and would take {self._batch()} now; the Trainer counts steps: set "
                           "per_device_train_batch_size and gradient_accumulation_steps so that it is the same")
        for name in _PROGRESS:
            setattr(self._trainer.state, name, state[name])

    def _batch(self) -> int:
        return self._trainer.get_total_train_batch_size(self._trainer.args)
