"""What the integrations of other libraries' loops have in common."""
from typing import Any, Sequence, Tuple

from cairn.errors import Invalid
from cairn.torch import run


def need(tested: str, version: str, *found: Tuple[Any, Sequence[str]]) -> None:
    """Raises ImportError unless each of these objects has what is used of it beyond the library's documented interface."""
    missing = [f"{type(one).__name__}.{name}" for one, names in found for name in names if not hasattr(one, name)]
    if missing:
        raise ImportError(f"Cairn was tested with {tested}, and this one, {version}, lacks {', '.join(missing)}: install a version like that")


def attach(*state: Any, name: str = "main", **options: Any) -> "run.Run":
    """As `cairn.torch.attach`, of a loop that begins here and ends by itself: a handle that is there belongs to one that has not ended."""
    left = run._attached.get(name)
    if left is not None and left.protected:
        raise Invalid(f'a loop "{name}" is attached and has not ended (by an exception, perhaps): begin anew in another process, or give another name=')
    run._attached.pop(name, None)
    return run.attach(*state, name=name, **options)
