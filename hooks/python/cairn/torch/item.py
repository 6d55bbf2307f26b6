"""Item: a part of the state as the session knows it, and where its bytes are at each copy."""
import sys
from typing import List, Optional

import torch

from cairn.errors import PeerGone
from cairn.memory import Piece
from cairn.session import Session
from cairn.torch.model import Part
from cairn.torch.placement import DTYPES


class Item:
    """A part, registered. A copy in pinned memory stands for it where its device's memory cannot be reached.

    device  the number of its CUDA device, whose memory is registered; None: it is not
    copied  what may still be copied from: the program may let go of it before the fence
    """

    def __init__(self, session: Session, part: Part, fence: bool):
        local = part.local()
        self.part = part
        self.shadow: Optional[torch.Tensor] = None
        self.why_shadow = ""
        self.device: Optional[int] = None
        self.copied: Optional[torch.Tensor] = None
        if local.device.type == "cuda":
            try:
                self._add(session, fence)
                self.device = local.device.index
                return
            except PeerGone as error:
                self.why_shadow = str(error)
        if local.device.type != "cpu":
            self.shadow = torch.empty_like(local, device="cpu", pin_memory=True)
        self._add(session, fence)

    def _add(self, session: Session, fence: bool) -> None:
        local = self.part.local()
        self.pieces = self._pieces()
        self.base = local.data_ptr()
        self.number = session.add_array(self.part.name, DTYPES[self.part.dtype], self.part.placement.shape, self.pieces, optional=True,
                                        cuda=self.shadow is None and local.device.type == "cuda", fence=fence)

    def _pieces(self) -> List[Piece]:
        return self.part.placement.pieces(self.part.local() if self.shadow is None else self.shadow)

    def refresh(self, session: Session) -> None:
        if not self.pieces:
            return
        local = self.part.local()
        if self.shadow is not None:
            self.shadow.copy_(local, non_blocking=True)
            return
        if self.device is not None:
            self.copied = local
        if local.data_ptr() == self.base:
            return
        for i, piece in enumerate(self._pieces()):
            session.update(self.number, i, piece.data)
        self.base = local.data_ptr()

    def fill(self) -> None:
        if self.shadow is not None:
            self.part.local().copy_(self.shadow)


def say_shadows(items: List[Item], speaks: bool) -> None:
    why = next((item.why_shadow for item in items if item.why_shadow), "")
    if why and speaks:
        print(f"cairn: tensors of the GPU are copied to host memory while the program waits: {why}", file=sys.stderr, flush=True)
