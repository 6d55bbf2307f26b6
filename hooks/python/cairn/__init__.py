"""Checkpoint and restart for Slurm jobs.

A program started by ``srun --checkpoint`` is saved on preemption, time limit, interval or request, and resumes on whatever nodes and number of
ranks it gets next. Started without, every call is a cheap no-op: no second code path is needed.

    import cairn
    session = cairn.Session()
    session.add("u", u, shape=(1024, 512), offset=(rank * rows, 0))   # a NumPy array or anything with DLPack: this rank's part of "u"
    report = session.restore()
    for step in range(report.step, steps):
        compute(u)
        session.step(step + 1)
    session.finalize()

`Checkpoint` reads what was saved, in any process. For PyTorch see `cairn.torch.attach`. Needs nothing but the standard library; the runtime
(libcairn.so) is found by way of srun's environment.
"""
from cairn.checkpoint import Checkpoint, SavedArray
from cairn.errors import Busy, Damage, Error, Invalid, IOFailure, Mismatch, OutOfMemory, PeerGone, Timeout
from cairn.memory import Piece
from cairn.session import Blob, Policy, Report, Session, Table

__all__ = ["Blob", "Busy", "Checkpoint", "Damage", "Error", "IOFailure", "Invalid", "Mismatch", "OutOfMemory", "PeerGone", "Piece", "Policy",
           "Report", "SavedArray", "Session", "Table", "Timeout"]
__version__ = "0.1.0"
