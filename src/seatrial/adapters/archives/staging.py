"""The temporary folder that an archive is unpacked into.

It is a hidden sibling of the target. It is renamed after the whole archive was valid, and removed otherwise. A refused
archive leaves nothing behind; a crash leaves a folder whose name starts with a dot.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from seatrial.adapters.archives.rules import Rule, printable
from seatrial.errors import Conflict, InvalidArchive
from seatrial.system.removal import remove_tree


class Staging:
    """Writes members below its root. The ledger has checked their paths, so no parent is a link."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._links: list[tuple[PurePosixPath, str]] = []

    def folder(self, path: PurePosixPath) -> None:
        """Creates the folder and its parents. ``Path.mkdir`` is recursive, which fails for deep paths."""
        place, missing = self.root / path, list[Path]()
        while not place.is_dir():
            missing.append(place)
            place = place.parent
        for folder in reversed(missing):
            folder.mkdir()

    def file(self, path: PurePosixPath, pieces: Iterable[bytes], executable: bool) -> None:
        """Creates a new file. ``O_EXCL`` and ``O_NOFOLLOW`` protect even if a rule were wrong."""
        self.folder(path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(self.root / path, flags, 0o644)
        with open(descriptor, "wb", buffering=0) as target:  # noqa: PTH123 - a descriptor, not a path
            for piece in pieces:
                target.write(piece)
            os.fchmod(descriptor, 0o755 if executable else 0o644)

    def copy(self, source: PurePosixPath, path: PurePosixPath) -> None:
        """Writes a hard link as a separate file, so that changing one does not change the other."""
        self.folder(path.parent)
        shutil.copy2(self.root / source, self.root / path, follow_symlinks=False)

    def link(self, path: PurePosixPath, target: str) -> None:
        """Links are created last, so that no write can follow one."""
        self._links.append((path, target))

    def finish(self) -> None:
        """Creates the links, then checks where each of them leads, through all others."""
        for path, target in self._links:
            self.folder(path.parent)
            (self.root / path).symlink_to(target)
        for path, _ in self._links:
            self._check_link(path)

    def _check_link(self, path: PurePosixPath) -> None:
        link = self.root / path
        try:
            link.stat()
        except FileNotFoundError:
            pass  # a dangling link is allowed, if its target would be inside
        except OSError as loop:
            raise InvalidArchive(printable(str(path)), Rule.LINK_LOOP) from loop
        if not link.resolve().is_relative_to(self.root.resolve()):
            raise InvalidArchive(printable(str(path)), Rule.ESCAPING_LINK)


@contextmanager
def staged(into: Path) -> Iterator[Staging]:
    """A staging folder that becomes ``into`` if the block succeeds. ``into`` must be missing or empty."""
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise Conflict(f"{into} already exists.", fix="Give a folder that does not exist yet.")
    into.parent.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix=f".{into.name}.", dir=into.parent))
    try:
        staging = Staging(root)
        yield staging
        staging.finish()
        root.chmod(0o755)
        root.replace(into)
    finally:
        remove_tree(root)
