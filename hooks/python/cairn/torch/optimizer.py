"""The state of an optimizer: tensors by the name of their parameter, the rest and all groups' hyperparameters as plain values.

Optimizers make their state in their first step; a checkpoint has to go somewhere before. So `State` lets the optimizer make it in a step that changes
nothing, and takes it back when there is nothing to restore: what a fresh run does is not touched.
"""
import collections
import contextlib
import importlib
from typing import Any, Callable, Dict, Iterator, List, Set, Tuple

import torch

from cairn.torch.model import Part
from cairn.torch.placement import Placement, is_dtensor, local_of, place

Names = Dict[int, List[Tuple[str, Placement, torch.Tensor]]]
_module = vars(importlib.import_module("torch.optim.optimizer"))  # which is no attribute of torch.optim
_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")  # of an optimizer
_GLOBAL_HOOKS = ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")  # of torch.optim.optimizer


def stepping(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """The one whose step calls hooks: optimizers that call their parameters by names (NamedOptimizer, torchrec's KeyedOptimizer) are shells of one."""
    inside = getattr(optimizer, "_optimizer", None)
    return stepping(inside) if isinstance(inside, torch.optim.Optimizer) else optimizer


def inner_of(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """The one that has this rank's state: ZeroRedundancyOptimizer keeps its partition in a plain optimizer inside; the other ranks keep theirs."""
    optimizer = stepping(optimizer)
    return optimizer.optim if type(optimizer).__name__ == "ZeroRedundancyOptimizer" else optimizer


def names_in(optimizer: torch.optim.Optimizer, names: Names) -> Names:
    """`names`, and for the optimizer's parameters that belong to no attached model "group.<i>.<j>". `optimizer` is the outer one, so that a
    parameter's number is the same on all ranks."""
    out = dict(names)
    for i, group in enumerate(optimizer.param_groups):
        for j, parameter in enumerate(group["params"]):
            out.setdefault(id(parameter), [(f"group.{i}.{j}", place(parameter), parameter)])
    return out


class State:
    """names: by id of the parameter, from model.parts_of. make: whether state that the optimizer has not made yet is made."""

    def __init__(self, name: str, optimizer: torch.optim.Optimizer, names: Names, make: bool = True):
        self.inner = inner_of(optimizer)
        self.name = name
        self.outer = optimizer
        self.spread = self.inner is not optimizer
        self.names = names_in(optimizer, names)
        self.before = {parameter: dict(state) for parameter, state in self.inner.state.items()}
        self.made = make and self._make()
        self.spare = {parameter: dict(state) for parameter, state in self.inner.state.items()}

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        for group in self.inner.param_groups:
            yield from group["params"]

    def _make(self) -> bool:
        """Has the optimizer make its state; whether that could be done. Those that need a closure (LBFGS) cannot, and are saved as plain values."""
        if isinstance(self.inner, torch.optim.LBFGS):
            return False
        lacking = [parameter for parameter in self.parameters() if parameter.requires_grad and parameter not in self.inner.state
                   and parameter.numel() > 0]  # of a DTensor's elements all count
        if lacking:
            try:
                with _harmless(self.inner, list(self.parameters()), lacking):
                    type(self.inner).step(self.inner)
            except BaseException:
                self.discard()
                raise
        return True

    def discard(self) -> None:
        """There was nothing to restore: the optimizer is as it came."""
        self.inner.state.clear()
        self.inner.state.update(self.before)

    def parts(self) -> List[Part]:
        out = []
        for parameter, key, tensor in self._tensors(self.spare):
            for name, placement, _ in self.names[id(parameter)]:
                alike = local_of(tensor).shape == local_of(parameter).shape
                where = placement if alike else place(tensor)
                out.append(Part(f"{self.name}.state.{name}.{key}", tensor.dtype, where,
                                lambda p=parameter, k=key: local_of(self._now(p, k)), parameter))
        return out

    def _tensors(self, state) -> Iterator[Tuple[torch.nn.Parameter, str, torch.Tensor]]:
        if not self.made:
            return
        for parameter in self._held():
            for key, value in state.get(parameter, {}).items():
                if isinstance(value, torch.Tensor):
                    yield parameter, key, value

    def _held(self) -> Iterator[torch.nn.Parameter]:
        """Parameters of which this rank has an element: FSDP1 gives the others no gradient, and the optimizer no state. Those that were added to a group
        since have no name."""
        return (parameter for parameter in self.parameters()
                if id(parameter) in self.names and (local_of(parameter) if is_dtensor(parameter) else parameter).numel() > 0)

    def _now(self, parameter, key) -> torch.Tensor:
        state = self.inner.state.get(parameter)
        value = state.get(key) if state else None
        return value if isinstance(value, torch.Tensor) else self.spare[parameter][key]

    # ---- plain values ----

    def values(self) -> Dict[str, Any]:
        """What is no tensor of its parameter: scalars by name, absent state, hyperparameters of all groups."""
        scalars, absent = {}, []
        for parameter in self._held():
            state = self.inner.state.get(parameter)
            name = self.names[id(parameter)][0][0]
            if not state:
                if self.made and self.spare.get(parameter):
                    absent.append(name)
                continue
            plain = {key: value for key, value in state.items() if not (self.made and isinstance(value, torch.Tensor))}
            if plain:
                scalars[name] = plain
        groups = [{"of": self._named(group), **{k: v for k, v in group.items() if k != "params"}} for group in self.outer.param_groups]
        return {"scalars": scalars, "absent": absent, "groups": groups}

    def _named(self, group: Dict[str, Any]) -> List[str]:
        return [self.names[id(parameter)][0][0] for parameter in group["params"] if id(parameter) in self.names]

    def unloaded(self, loaded: Set[str]) -> List[str]:
        """Names of parameters of which no state was loaded: the optimizer makes it in its next step."""
        items: Dict[str, List[str]] = {}
        for parameter, key, _ in self._tensors(self.spare):
            names = [name for name, _, _ in self.names[id(parameter)]]
            items.setdefault(names[0], []).extend(f"{self.name}.state.{name}.{key}" for name in names)
        return [name for name, own in items.items() if loaded.isdisjoint(own)]

    def load(self, values: Dict[str, Any]) -> None:
        absent = set(values["absent"])
        for parameter in self.parameters():
            name = self.names[id(parameter)][0][0]
            if name in absent:
                self.inner.state.pop(parameter, None)
            elif name in values["scalars"]:
                self.inner.state.setdefault(parameter, {}).update(values["scalars"][name])
        by_member = {name: group for group in values["groups"] for name in group["of"]}
        for i, group in enumerate(self.outer.param_groups):
            saved = next((by_member[name] for name in self._named(group) if name in by_member), None)
            if saved is None and not group["params"] and i < len(values["groups"]):
                saved = values["groups"][i]
            for own in (group, self.inner.param_groups[i]) if self.spread else (group,):  # of the inner one's, this rank may have no parameter
                _set_group(own, saved or {})


def _set_group(group: Dict[str, Any], saved: Dict[str, Any]) -> None:
    for key, value in saved.items():
        if key == "of":
            continue
        if isinstance(group.get(key), torch.Tensor) and isinstance(value, torch.Tensor):
            group[key].copy_(value)
        else:
            group[key] = value




@contextlib.contextmanager
def _harmless(optimizer: torch.optim.Optimizer, parameters, lacking) -> Iterator[None]:
    """Inside, a step makes the state of those that lack it, and calls no hooks. All else is put back, after an error too: parameters, gradients, random
    generators, and what the groups and the optimizer itself hold (learning rates, counts of steps)."""
    grads = [parameter.grad for parameter in parameters]
    values = [parameter.detach().clone() for parameter in lacking]
    groups = [{key: (value, value.clone() if isinstance(value, torch.Tensor) else None) for key, value in group.items()} for group in optimizer.param_groups]
    attributes, global_hooks = dict(vars(optimizer)), {name: _module[name] for name in _GLOBAL_HOOKS}
    devices = {parameter.device.index for parameter in lacking if parameter.device.type == "cuda"}
    try:
        with torch.random.fork_rng(devices):
            vars(optimizer).update({name: collections.OrderedDict() for name in _HOOKS})
            _module.update({name: collections.OrderedDict() for name in _GLOBAL_HOOKS})
            for parameter in parameters:
                parameter.grad = None
            for parameter in lacking:
                parameter.grad = torch.zeros_like(parameter)
            for group in optimizer.param_groups:
                if "lr" in group:
                    group["lr"] = torch.zeros_like(group["lr"]) if isinstance(group["lr"], torch.Tensor) else 0.0
            yield
    finally:
        _module.update(global_hooks)
        vars(optimizer).clear()
        vars(optimizer).update(attributes)
        with torch.no_grad():
            for parameter, grad in zip(parameters, grads):
                parameter.grad = grad
            for parameter, value in zip(lacking, values):
                parameter.copy_(value)
            for group, kept in zip(optimizer.param_groups, groups):
                group.clear()
                for key, (value, content) in kept.items():
                    group[key] = value if content is None else value.copy_(content)
