"""What Cairn's calls raise. The text says what, which, why, and what to do."""


class Error(Exception):
    """Any error of Cairn. `code` is CAIRN_E_* of cairn.h."""

    code = 0


class Invalid(Error):
    """An argument is wrong, or the call does not fit here."""


class Mismatch(Error):
    """The program's items and the checkpoint's differ: do not run on."""


class Busy(Error):
    """The directory belongs to another live job or step."""


class IOFailure(Error):
    """Reading or writing failed: a disk that is full, a mount that is away. What is there is not damaged by it."""


class Damage(Error):
    """No checkpoint without damage is left."""


class Timeout(Error):
    """A bound has passed."""


class PeerGone(Error):
    """A rank has gone, or a driver or library that is needed is not there."""


class OutOfMemory(Error, MemoryError):
    """Memory could not be had."""


_KINDS = {-1: Invalid, -2: Mismatch, -3: Busy, -4: IOFailure, -5: Damage, -6: Timeout, -7: PeerGone, -8: OutOfMemory, -9: Invalid}


INVALID = -1


def of(code: int, text: str) -> Error:
    """The exception for a code of cairn.h."""
    error = _KINDS.get(code, Error)(text)
    error.code = code
    return error
