"""The state of an optimizer by parameter name, as FSDP's functions of the same names give and take it; of any module, wrapped or not.

    state = {"model": …, "optim": cairn.torch.optim_state_dict(model, optimizer)}
    dcp.save(state, storage_writer=cairn.torch.dcp.StorageWriter("/scratch/me/run7"))
    …
    dcp.load(state, storage_reader=cairn.torch.dcp.StorageReader("/scratch/me/run7"))            # on any number of ranks
    cairn.torch.optim_state_dict_to_load(model, optimizer, state["optim"], load_directly=True)

FSDP1 keeps many parameters as one flat one, of which each rank has a range. A range of a parameter is a few boxes of it: so its state is a ShardedTensor
of those boxes, which are views of the optimizer's own memory. Nothing is sent, where PyTorch's function gathers each tensor to cut it anew.
"""
import dataclasses
import math
from typing import Any, Dict, List, Mapping, Optional, Tuple

import torch
import torch.distributed as dist
from torch import nn

from cairn.torch.model import flat_parameters, parts_of
from cairn.torch.optimizer import Names, State, inner_of, names_in, stepping
from cairn.torch.placement import Placement, boxes_of_range, is_dtensor, local_of

Box = Tuple[Tuple[int, ...], Tuple[int, ...]]  # offset, extent


def optim_state_dict(model: nn.Module, optim: torch.optim.Optimizer, optim_state_dict: Optional[Mapping[str, Any]] = None,
                     group: Optional[dist.ProcessGroup] = None) -> Dict[str, Any]:
    """The optimizer's state as {"state": {parameter name: {key: value}}, "param_groups": […]}; names are those without any wrapper.

    optim_state_dict  the optimizer's own state dict to be taken; None: its state as it is. Where no step was made yet, on any rank, state is made by a step
                      that changes nothing, so that the result can be loaded into; the optimizer itself is left as it was
    group             over which an FSDP1 model is sharded; None: as its modules say
    Values of a module that FSDP1 has sharded are what `FSDP.state_dict_type` says: with FULL_STATE_DICT whole tensors (`offload_to_cpu` and
    `rank0_only` are obeyed), else this rank's part as ShardedTensors. Of all other modules they are as the optimizer has them: DTensors, and with
    ZeroRedundancyOptimizer this rank's partition alone. Tensors may share the optimizer's memory: save or copy them before its next step.
    Collective for FSDP1 (every rank gets every name: what is collective in a load then is so on all) and for ZeroRedundancyOptimizer.
    """
    names = parts_of(model)[1]
    kind = _Kind(model, group)
    flats = _flats(model, group)
    make = optim_state_dict is None and not _any_has_state(optim, flats)
    state = State("optim", optim, names, make)
    own = state.spare if optim_state_dict is None else _by_parameter(optim, state.names, optim_state_dict)
    state.discard()
    groups = state.outer.param_groups if optim_state_dict is None else optim_state_dict["param_groups"]
    out = {}
    for parameter in state.parameters():
        for name, placement, _ in state.names[id(parameter)]:
            if _here(placement) and own.get(parameter):
                out[name] = {key: _Value.of(value, placement, parameter, name in flats) for key, value in own[parameter].items()}
    _tell_all(out, flats)
    return {"state": kind.taken({name: {key: kind.shaped(value, flats.get(name)) for key, value in of_one.items()} for name, of_one in out.items()}),
            "param_groups": [{**group, "params": [name for parameter in own_group["params"] for name, *_ in state.names.get(id(parameter), ())]}
                             for group, own_group in zip(groups, state.outer.param_groups)]}


def optim_state_dict_to_load(model: nn.Module, optim: torch.optim.Optimizer, optim_state_dict: Mapping[str, Any], is_named_optimizer: bool = False,
                             load_directly: bool = False, group: Optional[dist.ProcessGroup] = None) -> Dict[str, Any]:
    """What `optim.load_state_dict` takes, made of the state by parameter name: of `optim_state_dict` here or of FSDP's function.

    optim_state_dict    whole or sharded tensors. What is sharded as this model is stays where it is; anything else is gathered, tensor by tensor: collective
    is_named_optimizer  it calls its parameters by names (NamedOptimizer, torchrec's KeyedOptimizer): so does the result
    load_directly       calls `optim.load_state_dict`. A named optimizer loads into the state that it has: where it has none, it is made first
    group               over which the state is sharded; None: as its tensors say
    Parameters that it does not name get no state, and begin anew; names of other parameters are passed over.
    """
    names = names_in(optim, parts_of(model)[1])
    flats = _flats(model, group)
    holders = {name: (parameter, placement) for of_group in inner_of(optim).param_groups for parameter in of_group["params"]
               for name, placement, _ in names[id(parameter)]}
    keys = _own_names(optim, names) if is_named_optimizer else _numbers(optim)
    state: Dict[Any, Dict[str, Any]] = {}
    saved = _Kind(model, group).given(optim_state_dict)
    for name in sorted(saved["state"]):  # whatever is gathered: in one order
        parameter, placement = holders.get(name, (None, None))
        for key, value in sorted(saved["state"][name].items()):
            pieces = _pieces(value, placement, parameter, flats.get(name), group)
            if parameter is None or not _here(placement):
                continue
            of_one = state.setdefault(keys[id(parameter)], {})
            if not isinstance(pieces, list):
                of_one.setdefault(key, pieces)
                continue
            if key not in of_one:
                of_one[key] = torch.zeros_like(local_of(parameter), dtype=value.dtype)
            for target, source in zip(placement.views(of_one[key]), pieces):
                target.copy_(source)
    by_member = {name: one for one in saved["param_groups"] for name in one["params"]}
    groups = []
    for one in optim.param_groups:
        members = [name for parameter in one["params"] for name, *_ in names[id(parameter)]]
        found = next((by_member[name] for name in members if name in by_member), one)
        groups.append({**one, **found, "params": [keys[id(parameter)] for parameter in one["params"]]})
    out = {"state": state, "param_groups": groups}
    if load_directly:
        if is_named_optimizer:
            _make_state_for(state, optim, names, keys)
        optim.load_state_dict(out)
    return out


def _any_has_state(optim: torch.optim.Optimizer, flats: Mapping[str, "_Flat"]) -> bool:
    """Whether the optimizer has made state on any of the ranks over which that is spread."""
    told = any(inner_of(optim).state.values())
    spread = {id(flat.group): flat.group for flat in flats.values()}
    outer = stepping(optim)
    if inner_of(optim) is not outer:
        spread[id(outer.process_group)] = outer.process_group
    for group in spread.values():
        of_ranks: List[Any] = [None] * dist.get_world_size(group)
        dist.all_gather_object(of_ranks, told, group)
        told = any(of_ranks)
    return told


def _make_state_for(loaded: Mapping[Any, Any], optim: torch.optim.Optimizer, names: Names, keys: Mapping[int, str]) -> None:
    """Has a named optimizer have state of what is to be loaded; of other parameters it is not to have any that it has not got itself."""
    before = State("optim", optim, names).before
    for parameter in [one for one in optim.state if one not in before and keys[id(one)] not in loaded]:
        del optim.state[parameter]


@dataclasses.dataclass(frozen=True)
class _Value:
    """Of a parameter's state on this rank. `boxes`: views of its part of a tensor that is cut as the flat parameter is; None: `whole` is all there is."""

    whole: Any = None
    boxes: Optional[List[torch.Tensor]] = None
    dtype: Optional[torch.dtype] = None

    @staticmethod
    def of(value: Any, placement: Placement, parameter: torch.Tensor, sharded: bool) -> "_Value":
        alike = isinstance(value, torch.Tensor) and placement.flat is not None and value.shape == local_of(parameter).shape
        if not alike:
            return _Value(value)
        boxes = placement.views(value.detach())
        return _Value(boxes=boxes, dtype=value.dtype) if sharded else _Value(boxes[0] if boxes else value.new_empty(placement.shape))


class _Kind:
    """Which kind of state dict the program has chosen for the FSDP1 modules of a model: `FSDP.state_dict_type`.

    groups  over which they are sharded, and replicated: rank 0 of all of them is the one that `rank0_only` means
    """

    def __init__(self, model: nn.Module, group: Optional[dist.ProcessGroup]):
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, StateDictType

        root = next(iter(FSDP.fsdp_modules(model)), None)
        groups = [group] if group is not None else [getattr(root, name, None) for name in ("process_group", "_inter_node_pg")]
        self.groups = [one for one in groups if one is not None]
        settings = FSDP.get_state_dict_type(model)
        self.full = settings is not None and settings.state_dict_type is StateDictType.FULL_STATE_DICT
        config = getattr(settings, "optim_state_dict_config", None)
        self.offload = bool(getattr(config, "offload_to_cpu", False))
        self.rank0_only = self.full and bool(getattr(config, "rank0_only", False))

    def shaped(self, value: _Value, flat: Optional["_Flat"]) -> Any:
        out = value.whole if value.boxes is None else flat.sharded(value.boxes, value.dtype, self.offload and not self.full)
        if self.full and value.boxes is not None:
            out = _whole(out, flat.group)
        return out.cpu() if self.offload and isinstance(out, torch.Tensor) and type(out) is torch.Tensor else out

    def taken(self, state: Dict[str, Any]) -> Dict[str, Any]:
        return state if self._takes() else {}

    def given(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Where one rank alone has it: the same on all."""
        if not self.rank0_only:
            return state
        held = [state if self._takes() else None]
        for group in reversed(self.groups):  # to the first of each group over which a rank's part is sharded, and from there
            dist.broadcast_object_list(held, group=group, group_src=0)
        return held[0]

    def _takes(self) -> bool:
        return not self.rank0_only or all(dist.get_rank(group) == 0 for group in self.groups)


@dataclasses.dataclass(frozen=True)
class _Flat:
    """A parameter inside of a flat one. ranks: the boxes that each rank of the group holds; of one that holds nothing, an empty box behind the end: DCP's
    planners do not know a rank's ShardedTensor that has no shards."""

    shape: Tuple[int, ...]
    ranks: List[List[Box]]
    group: dist.ProcessGroup
    device: torch.device

    def metadata(self, device: torch.device) -> List[Any]:
        from torch.distributed._shard.metadata import ShardMetadata

        members = dist.get_process_group_ranks(self.group)
        where = device.type if device.type == "cpu" else f"{device.type}:{{}}"
        count = torch.get_device_module(device).device_count()
        return [ShardMetadata(list(offset), list(extent), f"rank:{rank}/{where.format(rank % count)}")
                for rank, boxes in zip(members, self.ranks) for offset, extent in boxes]

    def sharded(self, boxes: List[torch.Tensor], dtype: torch.dtype, offload: bool) -> torch.Tensor:
        from torch.distributed._shard.sharded_tensor import Shard, ShardedTensor, TensorProperties
        from torch.distributed._shard.sharded_tensor.metadata import ShardedTensorMetadata
        from torch.distributed._shard.sharding_spec import EnumerableShardingSpec

        everything = self.metadata(torch.device("cpu") if offload else self.device)
        mine = [one for one in everything if one.placement.rank() == dist.get_rank()]
        boxes = boxes or [torch.empty([0] * len(self.shape), dtype=dtype, device=self.device)]
        shards = [Shard(box.cpu() if offload else box, one) for box, one in zip(boxes, mine)]
        return ShardedTensor._init_from_local_shards_and_global_metadata(
            shards, ShardedTensorMetadata(everything, torch.Size(self.shape), TensorProperties(dtype)), self.group,
            sharding_spec=EnumerableShardingSpec(everything))


def _here(placement: Placement) -> bool:
    """Whether this rank has a part of the state: without an element of a parameter in a flat one it has none, not even the count of steps."""
    return placement.flat is None or placement.flat[1] > 0


def _flats(model: nn.Module, group: Optional[dist.ProcessGroup]) -> Dict[str, _Flat]:
    """By name, the parameters that FSDP1 has sharded."""
    out = {}
    for module, i, name in flat_parameters(model):
        handle, flat = module._handle, module._flat_param
        of = group or module.process_group
        if not handle.uses_sharded_strategy or flat._shapes[i].numel() == 0:
            continue
        size, shape = flat._sharded_size.numel(), tuple(flat._shapes[i])
        ranks = []
        for rank in range(dist.get_world_size(of)):
            info = handle._get_shard_metadata(rank * size, (rank + 1) * size - 1)[i]
            ranks.append([(offset, extent) for offset, extent, _ in boxes_of_range(shape, info.intra_param_start_idx, info.numel_in_shard)]
                         if info.in_shard else [(shape, (0,) * len(shape))])
        out[name] = _Flat(shape, ranks, of, flat.device)
    return out


def _tell_all(out: Dict[str, Dict[str, _Value]], flats: Mapping[str, _Flat]) -> None:
    """Has every rank know the state of which it holds nothing, so that it can take part in gathering that, now or when it is loaded."""
    for group in {id(flat.group): flat.group for flat in flats.values()}.values():
        mine = {name: {key: dataclasses.replace(value, boxes=value.boxes and []) for key, value in of_one.items()} for name, of_one in out.items()
                if name in flats and flats[name].group is group}
        told: List[Any] = [None] * dist.get_world_size(group)
        dist.all_gather_object(told, mine, group)
        for of_rank in told:
            for name, of_one in of_rank.items():
                out.setdefault(name, of_one)
    ordered = {name: dict(sorted(out[name].items())) for name in sorted(out)}  # as they are gathered
    out.clear()
    out.update(ordered)


def _whole(value: Any, group: Optional[dist.ProcessGroup]) -> torch.Tensor:
    """A sharded tensor's content, on every rank of the group."""
    if is_dtensor(value):
        return value.full_tensor()
    group = group or value._process_group
    shards, members = value.metadata().shards_metadata, dist.get_process_group_ranks(group)
    of_ranks = [[one for one in shards if one.placement.rank() == rank] for rank in members]
    longest = max(sum(math.prod(one.shard_sizes) for one in of_rank) for of_rank in of_ranks)
    device = torch.device(shards[0].placement.device().type)
    mine = torch.zeros(longest, dtype=value.dtype, device=_served(group, device))
    at = 0
    for shard in value.local_shards():
        mine[at:at + shard.tensor.numel()] = shard.tensor.detach().flatten()
        at += shard.tensor.numel()
    parts = [torch.empty_like(mine) for _ in members]
    dist.all_gather(parts, mine, group)
    out = torch.empty(value.metadata().size, dtype=value.dtype, device=device)
    for of_rank, part in zip(of_ranks, parts):
        at = 0
        for one in of_rank:
            count = math.prod(one.shard_sizes)
            _box(out, one.shard_offsets, one.shard_sizes).copy_(part[at:at + count].view(one.shard_sizes))
            at += count
    return out


def _served(group: dist.ProcessGroup, device: torch.device) -> torch.device:
    """Where a tensor must be for the group to send it: on its device, unless no backend of the group serves that, as NCCL serves no CPU memory."""
    types = [backend.partition(":")[0] for backend in dist.get_backend_config(group).split(",")]
    return device if device.type in types else torch.device(types[0])


def _box(whole: torch.Tensor, offset, extent) -> torch.Tensor:
    return whole[tuple(slice(first, first + count) for first, count in zip(offset, extent))]


def _pieces(value: Any, placement: Optional[Placement], parameter: Optional[torch.Tensor], flat: Optional[_Flat],
            group: Optional[dist.ProcessGroup]) -> Any:
    """This rank's part of a value: a list of boxes for a part of a flat parameter, in its placement's order, else what the optimizer is to hold."""
    if hasattr(value, "local_shards"):
        metadata = value.metadata().shards_metadata
        if flat is not None and [(tuple(one.shard_offsets), tuple(one.shard_sizes)) for one in metadata] == [box for boxes in flat.ranks for box in boxes]:
            return [shard.tensor for shard in value.local_shards()]
        value = _whole(value, group)
    elif is_dtensor(value) and not (is_dtensor(parameter) and (value.device_mesh, value.placements) == (parameter.device_mesh, parameter.placements)):
        value = value.full_tensor()
    if parameter is None or not isinstance(value, torch.Tensor) or is_dtensor(value) or not value.dim() or tuple(value.shape) != placement.shape:
        return value
    if placement.flat is not None:
        start, count, _ = placement.flat
        return [_box(value, offset, extent) for offset, extent, _ in boxes_of_range(placement.shape, start, count)]
    if is_dtensor(parameter):
        from torch.distributed.tensor import DTensor

        local = _box(value, placement.offset, parameter.to_local().shape).clone()
        return DTensor.from_local(local, parameter.device_mesh, parameter.placements, run_check=False, shape=parameter.shape, stride=parameter.stride())
    return value


def _numbers(optimizer: torch.optim.Optimizer) -> Dict[int, int]:
    """By id of a parameter, its number in the optimizer's own state dict."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return {id(parameter): number for number, parameter in enumerate(parameters)}


def _own_names(optimizer: torch.optim.Optimizer, names: Names) -> Dict[int, str]:
    """By id of a parameter, its name in the optimizer's own state dict, where it keeps that."""
    for attribute in ("named_parameters", "params"):  # of NamedOptimizer, of KeyedOptimizer
        own = getattr(optimizer, attribute, None)
        if isinstance(own, Mapping):
            return {id(parameter): name for name, parameter in own.items()}
    return {one: of_one[0][0] for one, of_one in names.items()}


def _by_parameter(optimizer: torch.optim.Optimizer, names: Names, given: Mapping[str, Any]) -> Dict[torch.Tensor, Dict[str, Any]]:
    """The state in an optimizer's own state dict, whose keys are numbers or names."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    keys = {**{name: one for one, name in _own_names(optimizer, names).items()}, **{number: one for one, number in _numbers(optimizer).items()}}
    by_id = {id(parameter): parameter for parameter in parameters}
    return {by_id[keys[key]]: value for key, value in given["state"].items()}
