"""Hugging Face's Trainer, saved and resumed in one line. Needs transformers 5.

    trainer = transformers.Trainer(model, arguments, train_dataset=data)
    cairn.transformers.attach(trainer)
    trainer.train()

The end of each step is the boundary, and in evaluations a save may be made at any moment. What was due after the step that was saved (an evaluation, the
end of an epoch) is done when the run goes on. Checkpoints of the Trainer's own are not needed for it (`save_strategy="no"`).
"""
from typing import Any, Dict, List, Tuple

import transformers
from transformers.trainer_callback import ExportableState

from cairn.errors import Invalid, Mismatch
from cairn.torch import trainers
from cairn.torch.generators import random_state, set_random_state

_PROGRESS = ("global_step", "epoch", "num_input_tokens_seen", "total_flos", "best_metric", "best_global_step", "best_model_checkpoint")
_DUE = ("should_evaluate", "should_save", "should_training_stop")
_REPLACED = ("_run_epoch", "_load_rng_state", "evaluation_loop")  # of the trainer, while it trains


def attach(trainer: transformers.Trainer, **options: Any) -> None:
    """Has `trainer.train` attach its model, optimizer, scheduler and place in the data, restore them, and finalize the run at its end. Once a trainer.

    options  of `cairn.torch.attach`: match, rename, name, extra
    """
    trainers.need("transformers 5.24", transformers.__version__, (trainer, (*_REPLACED, "_maybe_log_save_evaluate")))
    trainer.add_callback(_Callback(trainer, options))


class _Callback(transformers.TrainerCallback):
    def __init__(self, trainer: transformers.Trainer, options: Dict[str, Any]):
        self._trainer, self._options = trainer, options

    def on_train_begin(self, args, state, control, **_):
        trainer = self._trainer
        self._progress = _Progress(trainer)
        optimizer = getattr(trainer.optimizer, "optimizer", trainer.optimizer)  # inside of accelerate's
        extra = {**self._options.get("extra", {}), "trainer": self._progress}
        self._run = trainers.attach(trainer.model_wrapped, optimizer, scheduler=trainer.lr_scheduler, scaler=trainer.accelerator.scaler,
                                    **{**self._options, "extra": extra})
        evaluation_loop = trainer.evaluation_loop

        def evaluate_quietly(*arguments, **options):
            with self._run.quiet():
                return evaluation_loop(*arguments, **options)

        trainer.evaluation_loop = evaluate_quietly
        if state.global_step and self._progress.restored:
            self._go_on(state.global_step)

    def _go_on(self, step: int) -> None:
        """The Trainer has looked for where to begin before its callbacks are called: from here on it is told the same as by a checkpoint of its own."""
        trainer = self._trainer
        trainer._initial_global_step = trainer._globalstep_last_logged = step
        run_epoch = trainer._run_epoch

        def run_rest(*, epoch, num_update_steps_per_epoch, **rest):
            first, steps = self._place(step, num_update_steps_per_epoch)
            if rest["epochs_trained"] > first:
                raise Invalid(f"train was given a checkpoint of epoch {rest['epochs_trained']}, and Cairn's own is of epoch {first}: leave "
                              "resume_from_checkpoint out, so that the run goes on from Cairn's")
            if self._run.report.finished:
                trainer.control.should_training_stop = True
            elif epoch == first:
                self._run.reset_generators()
                self._do_what_was_due(epoch, **rest)
                if step >= trainer.state.max_steps:
                    trainer.control.should_training_stop = True
                if trainer.control.should_training_stop:
                    steps = num_update_steps_per_epoch  # none is left, only the epoch's end
                generators = random_state()
                trainer._load_rng_state = lambda _: set_random_state(generators)  # called when the batches that were used have been passed over
                if not (trainer.control.should_training_stop and trainer.args.ignore_data_skip):
                    run_epoch(epoch=epoch, num_update_steps_per_epoch=num_update_steps_per_epoch, **rest | {
                        "resume_from_checkpoint": "", "epochs_trained": first,
                        "steps_trained_in_current_epoch": steps * trainer.args.gradient_accumulation_steps})
            elif epoch > first:
                run_epoch(epoch=epoch, num_update_steps_per_epoch=num_update_steps_per_epoch, **rest)

        trainer._run_epoch = run_rest

    def _place(self, step: int, steps_per_epoch: int) -> Tuple[int, int]:
        """The epoch to go on with, and how many of its steps were made: all, where its end is still to come."""
        if self._trainer.args.ignore_data_skip:  # it begins each epoch with its first batch
            return step // steps_per_epoch, 0
        return (step - 1) // steps_per_epoch, (step - 1) % steps_per_epoch + 1

    def _do_what_was_due(self, epoch: int, *, model, trial, ignore_keys_for_eval, start_time, **_) -> None:
        for name in self._progress.due:
            setattr(self._trainer.control, name, True)
        self._trainer._maybe_log_save_evaluate(self._trainer._tr_loss, None, model, trial, epoch, ignore_keys_for_eval, start_time)

    def on_step_end(self, args, state, control, **_):
        self._progress.due = [name for name in _DUE if getattr(control, name) and (name != "should_training_stop" or state.global_step < state.max_steps)]
        self._run.step()

    def on_train_end(self, args, state, control, **_):
        self._progress.due = []
        self._run.finalize()
        for name in _REPLACED:
            vars(self._trainer).pop(name, None)


class _Progress:
    """How far a Trainer is. It counts in steps, so a step must remain what it was.

    due  what the Trainer has to do after the last step, of _DUE
    """

    def __init__(self, trainer: transformers.Trainer):
        self._trainer = trainer
        self.due = []
        self.restored = False

    def state_dict(self) -> Dict[str, Any]:
        return {"batch": self._batch(), "due": self.due, "callbacks": {name: [one.state()["attributes"] for one in callbacks] for name, callbacks in
                                                                       self._callbacks().items()},
                **{name: getattr(self._trainer.state, name) for name in _PROGRESS}}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        if state["batch"] != self._batch():
            raise Mismatch(f"a step took {state['batch']} samples, and would take {self._batch()} now; the Trainer counts steps: set "
                           "per_device_train_batch_size and gradient_accumulation_steps so that it is the same")
        for name in _PROGRESS:
            setattr(self._trainer.state, name, state[name])
        for name, callbacks in self._callbacks().items():
            for callback, attributes in zip(callbacks, state["callbacks"].get(name, ())):
                vars(callback).update(attributes)
        self.due = state["due"]
        self.restored = True

    def _callbacks(self) -> Dict[str, List[ExportableState]]:
        """Those that have a state, as EarlyStoppingCallback has, by the names that the Trainer's own checkpoints would give them."""
        found: Dict[str, List[ExportableState]] = {}
        for callback in self._trainer.callback_handler.callbacks:
            if isinstance(callback, ExportableState):
                found.setdefault(type(callback).__name__, []).append(callback)
        return found

    def _batch(self) -> int:
        return self._trainer.get_total_train_batch_size(self._trainer.args)
