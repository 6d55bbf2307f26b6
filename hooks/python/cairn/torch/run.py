"""Run: a training loop that is saved and resumed. `attach` makes one."""
import contextlib
import dataclasses
import os
import sys
from typing import Any, Dict, Iterable, Iterator, Mapping, Optional, Sequence, Set, Union

import torch
from torch import nn

from cairn.errors import Invalid
from cairn.session import Blob, Policy, Report, Session
from cairn.torch import codec, rehearsal
from cairn.torch.boundary import after_steps_of, expect
from cairn.torch.changes import compared, inside, item_renames, nothing_saved, optimizer_renames, renamed
from cairn.torch.generators import random_state, set_random_state
from cairn.torch.item import Item, say_shadows
from cairn.torch.meeting import meet
from cairn.torch.model import parts_of
from cairn.torch.optimizer import State, stepping
from cairn.torch.place import Place
from cairn.torch.ranks import differs_from_rank_0, rank_and_size

VALUES = "torch.values"
_LOCAL = "torch.generators"  # and the loader's own place
_MAX_VALUES = 1 << 20
_MAX_LOCAL = 1 << 16
_attached: Dict[str, "Run"] = {}
_ended: Set[str] = set()  # names of protected runs that this process has finalized


def attach(model: Union[nn.Module, Mapping[str, nn.Module]], optimizer: Union[None, torch.optim.Optimizer, Mapping[str, torch.optim.Optimizer]] = None,
           *, scheduler: Any = None, loader: Any = None, scaler: Any = None, extra: Optional[Mapping[str, Any]] = None, boundary: str = "loop",
           match: str = "strict", rename: Optional[Mapping[str, str]] = None, outputs: Sequence[Union[str, "os.PathLike[str]"]] = (), name: str = "main") -> "Run":
    """Registers everything that makes up the training's state, restores it if there is something to restore, and returns the handle. Collective.

    model, optimizer  one, or a dict of them by name. Wrap the model (DDP, FSDP, fully_shard, tensor parallel) before
    scheduler         one, or a list or dict: anything with state_dict() and load_state_dict()
    loader            a loader whose place is saved: with an `ElasticSampler`, exact on any number of ranks, or one that keeps its own place
                      (state_dict), on as many ranks. For others Run.batches counts
    scaler            torch.amp.GradScaler
    extra             by name: objects with state_dict() and load_state_dict(), of small plain values; rank 0's are saved
    boundary          what ends an iteration: "loop": `Run.step`, or the next item of `Run.batches`. "optimizer", for a loop that is not yours: the first
                      forward of any module after a step of the optimizer, of which there must be one alone
    match             what may differ from the checkpoint where the user gives no --checkpoint-match: "strict" (nothing), "allow-missing" (what the
                      checkpoint lacks stays as it was made), "allow-extra" (what is saved and not attached is passed over), or both by a comma
    rename            by a pattern of parameter names in the checkpoint, the model's: {"encoder.*": "backbone.*"}; a '*' stands for any
                      characters. Their optimizer state goes with them
    outputs           files to which rank 0 only ever appends (a CSV of losses): cut back to where they were at the save, so that no step stands in them
                      twice. Flush them in every iteration, and open them after this call: open(path, "a" if run.steps_done else "w")
    name              of the session: one for each attached loop of a program

    Random generators of Python, NumPy and PyTorch are saved too; they are each rank's own, and left as they are when the number of ranks changed.
    A second call with the same name gives the same handle, until `Run.finalize`; then another loop needs another name. Raises `cairn.Mismatch` when
    checkpoint and program differ: no rank may run on then.
    """
    if name in _ended:
        raise Invalid(f'the loop "{name}" was finalized in this process, and another one would resume from its end: give this one another name=')
    if name not in _attached:
        _attached[name] = Run(name, _by_name(model, "model"), _by_name(optimizer, "optim"), _by_name(scheduler, "scheduler"), loader, scaler,
                              dict(extra or {}), boundary, match, dict(rename or {}), outputs)
    return _attached[name]


def attached() -> bool:
    """Whether there is a handle that has not been finalized."""
    return bool(_attached)


def _by_name(value, single: str) -> Dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (list, tuple)):
        return {f"{single}.{i}": one for i, one in enumerate(value)}
    return {single: value}


class Run:
    """The handle of an attached loop. Made by `attach`. ``with attach(…) as run:`` finalizes it at the end of the block, and leaves it as it is when an
    exception passes: the run can be resumed then.

    report      how the restore went (`cairn.Report`): what was loaded, renamed, missing, extra, by name
    steps_done  boundaries so far, over all lives
    """

    def __init__(self, name, models, optimizers, schedulers, loader, scaler, extra, boundary, match, rename, outputs):
        if boundary not in ("loop", "optimizer"):
            raise Invalid(f'boundary="{boundary}": loop or optimizer')
        if boundary == "optimizer" and len(optimizers) != 1:
            raise Invalid(f"{len(optimizers)} optimizers, and which one's step ends an iteration cannot be told: call run.step()")
        self._name = name
        meet()
        self._session = Session(name, *rank_and_size())
        self._rank = rank_and_size()[0]
        self._say_if_nobody_asked()
        self._place = Place(loader, self.step)
        self._plain = {**schedulers, **({"scaler": scaler} if scaler is not None else {}), **extra}
        for key, one in self._plain.items():
            if not hasattr(one, "state_dict") or not hasattr(one, "load_state_dict"):
                raise Invalid(f'"{key}" has no state_dict() and load_state_dict()')
        parts, by_parameter = [], {}
        for key, model in models.items():
            own, names = parts_of(model)
            parts += [dataclasses.replace(part, name=f"{key}.{part.name}") for part in own]
            by_parameter.update({one: [(inside(key) + part, *rest) for part, *rest in of_one] for one, of_one in names.items()})
        self._optimizers = [State(key, optimizer, by_parameter) for key, optimizer in optimizers.items()]
        self._apart = self.protected and differs_from_rank_0({state.name: [group["of"] for group in state.values()["groups"]] for state in self._optimizers})
        for state in self._optimizers:
            parts += state.parts()
        fenced = self._fence_before_steps()
        self._items = [Item(self._session, part, id(part.holder) in fenced) for part in parts]
        say_shadows(self._items, self._rank in (None, 0))
        self._devices = sorted({item.device for item in self._items if item.device is not None})
        self._values = self._session.add_blob(VALUES, _MAX_VALUES, Policy.MERGE)
        self._local = self._session.add_blob(_LOCAL, _MAX_LOCAL, Policy.RESEED)
        self._described = self._session.add_blob(rehearsal.VALUES, _MAX_VALUES, Policy.MERGE) if rehearsal.is_one() else None
        self._copying = False  # items hold what may still be copied
        self._encoded = False  # in a quiet stretch: at its beginning
        self._replayed = False  # a step of an optimizer is part of a CUDA graph, whose replay calls no hook
        self._random: Optional[Dict[str, Any]] = None  # as it was saved
        for path in outputs if self._rank in (None, 0) else ():
            self._session.add_output(path)
        self._session.on_copy(self._collect)
        self._rehearsed = (models, list(optimizers.values())) if rehearsal.is_one() else None
        # What cannot be saved is said now, not at the first save; and by all ranks, though one saves it: none goes on into the restore alone.
        codec.encode({key: one.state_dict() for key, one in self._plain.items()}, "the state of schedulers and extra")
        self._encode()
        self._rename = optimizer_renames(rename, models)
        self._say_streams()
        self.report = self._session.restore(match, item_renames(rename, models, optimizers))
        self.steps_done = self.report.step
        self._take_back()
        if boundary == "optimizer":
            after_steps_of(*map(stepping, optimizers.values()), self.step)
        else:
            expect(map(stepping, optimizers.values()), lambda: self.steps_done > self.report.step, self._rank in (None, 0) and self.protected)

    @property
    def id(self) -> str:
        """Of the run: the same in all its lives and on all ranks, as `cairn ls` shows it; "" without `srun --checkpoint`."""
        return self.report.run_id

    @property
    def restored(self) -> bool:
        """Whether a checkpoint was loaded."""
        return self.report.restored

    @property
    def protected(self) -> bool:
        """Whether saves will be made."""
        return self._session.active

    @property
    def accumulation_steps(self) -> int:
        """Batches that the step under way takes on each rank: divide each loss by it. 1 without an `ElasticSampler`."""
        return self._place.pieces

    @property
    def accumulating(self) -> bool:
        """Whether the step under way takes another batch after this one: the optimizer has to wait."""
        return self._place.accumulating

    # ---- the loop ----

    def step(self) -> None:
        """The end of an iteration: a boundary. Not needed in a loop over `batches`."""
        self._place.count()
        self.steps_done += 1
        self._say_streams()
        self._session.step(self.steps_done)
        self._fence_replays()

    def epochs(self, count: int) -> Iterator[int]:
        """Epochs that are left of `count`, by number."""
        return self._place.epochs(count)

    def batches(self, loader: Optional[Iterable] = None) -> Iterator[Any]:
        """The loader's batches, from where the run stands; asking for the next one is the boundary of the iteration before. Of the training data alone:
        it counts epochs. Without `loader` of the one that `attach` was given.

        In the first pass after a restore, batches that were used before are passed over. With another number of ranks the count is scaled where
        the loader's sampler splits the data over them (DistributedSampler); the order is the same only if it is seeded, as that one's is.
        The loader of `attach` with an `ElasticSampler` goes on at the exact sample; between the batches of one step (`accumulating`) is no boundary.
        """
        return self._place.batches(loader)

    def reset_generators(self) -> None:
        """Sets the random generators as they were restored, once more: for a loop that has used them on its way to where the run stands."""
        if self._random is not None:
            set_random_state(self._random)

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """``with run.quiet():`` around what leaves the models and the optimizers as they are (validation): a save may be made at any moment inside. What
        else is saved (schedulers, `extra`, generators, the place in the data) is what it was at the beginning."""
        self._say_streams()
        outer = self._encoded
        if self.protected and not outer:
            self._encode()
            self._encoded = True
        try:
            with self._session.quiet():
                yield
        finally:
            self._encoded = outer
            self._fence_replays()

    def fence(self) -> None:
        """Waits until the parameters and the optimizers' state of the last boundary are copied. The optimizers' steps do so themselves; needed before a
        change outside of them, as by the replay of a CUDA graph that holds no optimizer's step."""
        self._session.fence()
        if self._copying:
            self._copying = False
            for item in self._items:
                item.copied = None

    def metric(self, name: str, value: float) -> None:
        """Says what was measured, for every checkpoint from the next boundary on; one rank is enough. See `--checkpoint-keep=best=…`."""
        self._session.metric(name, float(value))

    def save(self, tag: Optional[str] = None, metrics: Optional[Mapping[str, float]] = None) -> None:
        """Asks for a save at one of the next boundaries; one rank is enough. A tagged checkpoint is never pruned.

        metrics  what was measured of this state, as by `metric`
        """
        self._session.save(tag, {name: float(value) for name, value in (metrics or {}).items()})

    def wait(self, timeout: Optional[float] = None) -> None:
        """Waits until every save that was asked for has ended. Collective, at one boundary; seconds."""
        self._say_streams()
        self._session.wait(timeout)
        self._fence_replays()

    def finalize(self) -> None:
        """Saves the last state, waits until it is durable, and records the run as finished. Collective."""
        self._say_streams()
        if self.protected:
            _ended.add(self._name)
        self._session.finalize()
        _attached.pop(self._name, None)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind, *_) -> None:
        if kind is None:
            self.finalize()

    # ---- devices ----

    def _fence_before_steps(self) -> Set[int]:
        """Has the optimizers' next steps wait for the copies of what they change; ids of the parameters that they hold.

        Not of those that are made for CUDA graphs (`capturable`), whose replays would not wait.
        """
        held = set()
        for optimizer in {id(one): one for state in self._optimizers for one in (stepping(state.outer), state.inner)}.values():
            optimizer.register_step_pre_hook(lambda *_: self._before_step())
            if not any(group.get("capturable") for group in optimizer.param_groups):
                held.update(id(parameter) for group in optimizer.param_groups for parameter in group["params"])
        return held

    def _before_step(self) -> None:
        if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
            self._replayed = True
        self.fence()

    def _fence_replays(self) -> None:
        if self._replayed:
            self.fence()

    def _say_streams(self) -> None:
        """The work of the present stream of each device is what a copy has to come after."""
        for device in self._devices:
            self._session.set_stream(device, torch.cuda.current_stream(device).cuda_stream)

    # ---- saving ----

    def _say_if_nobody_asked(self) -> None:
        """Where somebody did ask and this life runs unprotected all the same, the reason has been said."""
        asked = self.protected or "SLURM_CAIRN_TOKEN" in os.environ or os.environ.get("CAIRN_CHECKPOINT", "off") not in ("", "off")
        first = self._rank == 0 or self._rank is None and os.environ.get("SLURM_PROCID", "0") == "0"
        if first and not asked and "SLURM_JOB_ID" in os.environ and os.environ.get("CAIRN_LOG") != "quiet":
            print("cairn: not started by srun --checkpoint: nothing is saved (CAIRN_LOG=quiet: not a word of it)", file=sys.stderr, flush=True)

    def _collect(self) -> None:
        self._say_what_is_left_out()
        self._copying = True
        for item in self._items:
            item.refresh(self._session)
        if any(item.shadow is not None for item in self._items):
            torch.cuda.synchronize()
        if not self._encoded:
            self._encode()

    def _say_what_is_left_out(self) -> None:
        if self._rehearsed and not self.report.restored and self._rank in (None, 0):
            for what in rehearsal.left_out(*self._rehearsed, self._plain.values()):
                print(f"cairn: not attached, so not restored: {what}", file=sys.stderr, flush=True)
        self._rehearsed = None

    def _encode(self) -> None:
        optimizers = {state.name: state.values() for state in self._optimizers}
        values: Dict[str, Any] = {"optimizers": optimizers}
        if self._rank in (None, 0):
            values["plain"] = {key: one.state_dict() for key, one in self._plain.items()}
            values |= self._place.values()
        elif not self._apart:
            for one in optimizers.values():
                one["groups"] = []
        _put(self._values, codec.encode(values, "the state of optimizers, schedulers and extra"),
             "hyperparameters and the state_dict() of schedulers, scaler and extra must fit; what is larger belongs into a model")
        if self._described is not None:
            self._described.value = rehearsal.described(values, _MAX_VALUES)
        _put(self._local, codec.encode({"random": random_state(), **self._place.own()}, "the state of generators and loader"),
             "generators and the loader's state_dict() must fit; leave loader= out, or give an ElasticSampler")

    def _take_back(self) -> None:
        if not self.report.restored:
            for state in self._optimizers:
                state.discard()
            return
        loaded = set(self.report.loaded)
        for item in self._items:
            if item.part.name in loaded:
                item.fill()
        if VALUES in self.report.left:  # weights alone: training begins
            for state in self._optimizers:
                state.discard()
            return
        saved = [codec.decode(data) for data in self._session.saved_blobs(VALUES) if data]
        first = saved[0] if saved else nothing_saved()
        self.report = compared(self.report, set(first["optimizers"]) | set(first["plain"]),
                               {state.name for state in self._optimizers} | set(self._plain))
        for state in self._optimizers:
            of_all = [one["optimizers"][state.name] for one in saved if state.name in one["optimizers"]]
            if not of_all:
                state.discard()
                continue
            state.load({"scalars": {renamed(self._rename, k): v for one in of_all for k, v in one["scalars"].items()},
                        "absent": [renamed(self._rename, name) for one in of_all for name in one["absent"]] + state.unloaded(loaded),
                        "groups": [{**group, "of": [renamed(self._rename, name) for name in group["of"]]} for one in of_all for group in one["groups"]]})
        for key, one in self._plain.items():
            if key in first["plain"]:
                one.load_state_dict(first["plain"][key])
        self._place.take_back(first)
        self._say_what_changed(first["sampler"])
        own = None
        if _LOCAL in self.report.loaded:  # as many ranks as then
            own = codec.decode(self._local.value)
            self._random = own["random"]
            self.reset_generators()
        if not self._place.take_back_own(own) and self._rank in (None, 0):
            print(f"cairn: the loader's own place is that of another number of ranks ({self.report.world_size_saved}): epoch {self._place.epoch} begins anew, and "
                  "samples are used again (an ElasticSampler would go on at the next sample)", file=sys.stderr, flush=True)

    def _say_what_changed(self, sampler: Optional[Dict[str, Any]]) -> None:
        """On another number of ranks one line: what it means for the global batch."""
        before, now = self.report.world_size_saved, rank_and_size()[1] or 1
        if before in (0, now) or self._rank not in (None, 0):
            return
        if self._place.sampler is None or sampler is None:
            batch = f"batches of one rank are as before, all of them together {now / before:g} times as large"
        else:
            batch = f"global batch {self._place.sampler.global_batch} instead of {sampler['global_batch']}, accumulation steps {self._place.sampler.accumulation_steps}"
        rates = sorted({float(group["lr"]) for state in self._optimizers for group in state.outer.param_groups if "lr" in group})
        print(f"cairn: {now} rank{'s' if now > 1 else ''} instead of {before}; {batch}; learning rate {', '.join(f'{rate:g}' for rate in rates) or 'none'}", file=sys.stderr,
              flush=True)


def _put(blob: Blob, data: bytes, cure: str) -> None:
    try:
        blob.value = data
    except Invalid as error:
        raise Invalid(f"{error}: {cure}") from None
