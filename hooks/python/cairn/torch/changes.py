"""What a changed program takes of a checkpoint: renamed parameters, and what is attached besides or no more. The library compares the arrays."""
import dataclasses
import itertools
import re
from typing import Any, Dict, Iterable, Mapping, Set

from cairn.errors import Invalid, Mismatch
from cairn.session import Report


def item_renames(rename: Mapping[str, str], models: Iterable[str], optimizers: Iterable[str]) -> Dict[str, str]:
    """`rename` of parameters, for the names of items, their optimizers' state included."""
    out = {}
    for saved, new in rename.items():
        if saved.count("*") != new.count("*"):
            raise Invalid(f'rename: "{saved}" and "{new}" have not the same number of "*"')
        out.update({f"{key}.{saved}": f"{key}.{new}" for key in models})
    for saved, new in optimizer_renames(rename, models).items():
        out.update({f"{key}.state.{saved}.*": f"{key}.state.{new}.*" for key in optimizers})
    return out


def optimizer_renames(rename: Mapping[str, str], models: Iterable[str]) -> Dict[str, str]:
    """`rename` for the names by which optimizers know parameters."""
    return {inside(key) + saved: inside(key) + new for key in models for saved, new in rename.items()}


def inside(model: str) -> str:
    """What an optimizer puts before the names of a model's parameters: it may hold those of several models."""
    return "" if model == "model" else f"{model}."


def renamed(rename: Mapping[str, str], name: str) -> str:
    """The parameter's name in the program; a '*' is taken as cairn.h's cairn_rename says."""
    for pattern, new in rename.items():
        found = re.fullmatch("(.*?)".join(map(re.escape, pattern.split("*"))), name, re.DOTALL)
        if found:
            return "".join(itertools.chain(*itertools.zip_longest(new.split("*"), found.groups(), fillvalue="")))
    return name


def compared(report: Report, saved: Set[str], attached: Set[str]) -> Report:
    """The report with optimizers, schedulers and the like in it, by their names. Raises `cairn.Mismatch` for what is not allowed."""
    missing, extra = tuple(sorted(attached - saved)), tuple(sorted(saved - attached))
    refused = [f"{key}: attached, not in the checkpoint" for key in missing if "allow-missing" not in report.match]
    refused += [f"{key}: saved, not attached" for key in extra if "allow-extra" not in report.match]
    if refused:
        needed = ",".join(mode for mode, names in (("allow-missing", missing), ("allow-extra", extra)) if names)
        raise Mismatch(f"the checkpoint and the program differ; --checkpoint-match={needed} (or match=) would allow it:\n  " + "\n  ".join(refused))
    return dataclasses.replace(report, missing=report.missing + missing, extra=report.extra + extra)


def nothing_saved() -> Dict[str, Any]:
    """The values of a checkpoint in which no training was attached."""
    return {"optimizers": {}, "plain": {}, "place": (0, 0, 1), "sampler": None}
