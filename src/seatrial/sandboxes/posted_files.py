"""Small files that a sandbox is shown, and that are written again while it runs. ``Sandbox.post`` writes them."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Protocol

from seatrial.sandboxes.host.notice_board import NoticeBoard, NoticeBoards
from seatrial.sandboxes.host.view import Files
from seatrial.system.removal import scratch_directory


class Borrower(Protocol):
    """The part of a sandbox that is used here."""

    @property
    def files(self) -> Files: ...

    @property
    def notices(self) -> NoticeBoards | None: ...

    async def lend(self, directory: Path, place: str) -> bool: ...


class PostedFiles:
    """Those of one sandbox. Where it can borrow a notice board, its processes cannot change them; elsewhere each is a
    copy that root can change."""

    def __init__(self, sandbox: Borrower) -> None:
        self._sandbox = sandbox
        self._boards: dict[PurePosixPath, NoticeBoard | None] = {}
        """By the directory of the sandbox that shows it; ``None`` where none could be lent."""

    async def write(self, path: str, content: bytes) -> None:
        place = PurePosixPath(path)
        if place.parent not in self._boards:
            self._boards[place.parent] = await self._lent_board(str(place.parent))
        if (board := self._boards[place.parent]) is not None:
            await board.write(place.name, content)
            return
        with scratch_directory("seatrial-post-") as folder:
            source = folder / place.name
            source.write_bytes(content)
            source.chmod(0o444)
            await self._sandbox.files.put_file(source, path)

    async def remove(self) -> None:
        """Removes the boards. Call it once the sandbox is gone."""
        for board in filter(None, self._boards.values()):
            await board.remove()

    async def _lent_board(self, place: str) -> NoticeBoard | None:
        if (notices := self._sandbox.notices) is None:
            return None
        try:
            board = await notices.new()
        except OSError:  # this process may not mount
            return None
        if await self._sandbox.lend(board.directory, place):
            return board
        await board.remove()
        return None
