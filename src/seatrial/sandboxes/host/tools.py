"""What all sandboxes of this process share, of both kinds: threads with mounts of their own, and notice boards."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from seatrial.sandboxes.host.notice_board import NoticeBoards
from seatrial.sandboxes.host.private_mounts import PrivateMounts


class HostTools:
    """Made once for each cache directory, and used by all event loops."""

    def __init__(self, cache: Path) -> None:
        self.mounts = PrivateMounts()
        self.notices = NoticeBoards(self.mounts, cache / "notices")

    @classmethod
    def shared(cls, cache: Path) -> HostTools:
        """The one of this process. A forked process gets its own."""
        return _shared(cache, os.getpid())


@lru_cache(maxsize=8)
def _shared(cache: Path, _process: int) -> HostTools:
    return HostTools(cache)
