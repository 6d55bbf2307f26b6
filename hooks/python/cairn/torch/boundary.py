"""Where an iteration ends in loops that do not say so themselves."""
import os
import sys
from typing import Callable, Iterable

from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import Optimizer

PATIENCE = 100  # steps of optimizers


def after_steps_of(optimizer: Optimizer, boundary: Callable[[], None]) -> None:
    """Has `boundary` called at the first forward of any module after each step of the optimizer: schedulers, scaler and averages have moved by then.

    The hook on modules is there only between a step and the forward: with one, every call of every module would take PyTorch's slow path.
    """
    waiting = []
    process = os.getpid()

    def before_forward(*_):
        waiting.pop().remove()
        if os.getpid() == process:  # a forked worker has modules of its own
            boundary()

    def after_step(*_):
        if not waiting:  # else several steps came before a forward
            waiting.append(register_module_forward_pre_hook(before_forward))

    optimizer.register_step_post_hook(after_step)


def expect(optimizers: Iterable[Optimizer], seen: Callable[[], bool], speaks: bool) -> None:
    """Says so, on the rank that speaks, where the optimizers have made many steps and there was no boundary."""
    steps, hooks = 0, []

    def after_step(*_):
        nonlocal steps
        steps += 1
        if steps < PATIENCE and not seen():
            return
        for hook in hooks:
            hook.remove()
        if speaks and not seen():
            print(f'cairn: {PATIENCE} steps without a boundary, and nothing can be saved without one: call run.step() at the end of each iteration, '
                  'loop over run.batches(), or attach(…, boundary="optimizer")', file=sys.stderr, flush=True)

    hooks.extend(optimizer.register_step_post_hook(after_step) for optimizer in optimizers)
