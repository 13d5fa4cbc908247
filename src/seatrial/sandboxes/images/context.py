"""A build's context: its files, their digest, and a private copy of them.

The task's author is not trusted. Links are copied as links and never followed, other kinds of files are refused. The
Dockerfile has to be inside the environment: a link to a file of the host would put that file into the build's log.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import ImageFault
from seatrial.sandboxes.images.ignore import IgnoreRules

_CHUNK = 1 << 20
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """A file, folder or link of the context at the time of the walk."""

    path: str
    mode: int
    size: int
    mtime_ns: int
    inode: int

    @property
    def kind(self) -> str:
        return "link" if stat.S_ISLNK(self.mode) else "dir" if stat.S_ISDIR(self.mode) else "file"


class BuildContext:
    """One environment directory with its Dockerfile. Its methods block: call them in a thread."""

    def __init__(self, root: Path, dockerfile: str = "Dockerfile") -> None:
        if root.is_symlink() and not root.resolve().is_relative_to(root.parent.resolve()):
            raise ImageFault(f"The environment {root} is a link that leaves its task.")
        self.root = root.resolve()
        self.dockerfile = dockerfile
        self.text = self._own_file(dockerfile, 4 * _CHUNK)
        self._rules = self._ignore_rules()

    def entries(self) -> tuple[ContextEntry, ...]:
        """Everything that is not ignored, in order of path."""
        return tuple(sorted(self._walk("", self.root), key=lambda entry: entry.path))

    def digest(self, entries: tuple[ContextEntry, ...]) -> str:
        """A digest of paths, modes, link targets and contents, without times and owners."""
        total = hashlib.sha256()
        for entry in entries:
            permissions = stat.S_IMODE(entry.mode) if entry.kind == "file" else 0
            total.update(f"{entry.kind} {entry.path!r} {permissions:o} {self._content(entry)}\n".encode())
        return total.hexdigest()

    def copy(self, entries: tuple[ContextEntry, ...], into: Path) -> None:
        into.mkdir(parents=True, exist_ok=True)
        for entry in entries:
            source, target = self.root / entry.path, into / entry.path
            if entry.kind == "dir":
                target.mkdir(parents=True, exist_ok=True)
                shutil.copystat(source, target, follow_symlinks=False)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)

    def _walk(self, prefix: str, folder: Path, depth: int = 0) -> Iterator[ContextEntry]:
        if depth > _DEEPEST:
            raise ImageFault(f"The environment has folders nested more than {_DEEPEST} deep.")
        with os.scandir(folder) as found:
            children = list(found)
        for child in children:
            path = f"{prefix}{child.name}"
            about = child.stat(follow_symlinks=False)
            ignored = self._rules.ignores(path)
            is_dir = stat.S_ISDIR(about.st_mode)
            if not is_dir and not stat.S_ISREG(about.st_mode) and not stat.S_ISLNK(about.st_mode):
                if not ignored:
                    raise ImageFault(f"{path} in the environment is neither a file, a folder nor a link.")
                continue
            if not ignored:
                yield ContextEntry(path, about.st_mode, about.st_size, about.st_mtime_ns, about.st_ino)
            if is_dir and (not ignored or self._rules.brings_back):
                yield from self._walk(f"{path}/", Path(child.path), depth + 1)

    def _content(self, entry: ContextEntry) -> str:
        path = self.root / entry.path
        if entry.kind == "link":
            return repr(str(path.readlink()))
        if entry.kind == "dir":
            return ""
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def _ignore_rules(self) -> IgnoreRules:
        for name in (f"{self.dockerfile}.dockerignore", ".dockerignore"):
            if (self.root / name).exists() or (self.root / name).is_symlink():
                return IgnoreRules(self._own_file(name, _CHUNK).splitlines())
        return IgnoreRules(())

    def _own_file(self, name: str, limit: int) -> str:
        path = self.root / name
        try:
            inside = path.resolve(strict=True).is_relative_to(self.root)
            if not inside:
                raise ImageFault(f"{name} is a link that leaves the environment.")
            if not path.is_file() or path.stat().st_size > limit:
                raise ImageFault(f"{name} is not a file, or has more than {limit} bytes.")
            return path.read_bytes().decode(errors="replace")  # with its line ends, for the parser
        except FileNotFoundError:
            raise ImageFault(
                f"There is no {name} in {self.root}.", fix="Add one, or set docker_image in task.toml."
            ) from None
        except (OSError, RuntimeError) as error:
            raise ImageFault(f"{name} cannot be read: {error}.") from error
