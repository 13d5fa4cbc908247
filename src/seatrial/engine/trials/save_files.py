"""Saves the files of a try: finds them within limits, removes known secrets, and moves them into the blobs.

The executor calls it after grading, so it never raises. Files that cannot be saved are listed with the reason. It waits
for a blob store that does not answer, up to the operator's limit.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.domain.result import FileListing, FilesLeftOut, StoredFile
from seatrial.engine.trials.found_files import Found, LeftOut, Names, SaveLimits, find_files, rank
from seatrial.engine.trials.redaction import FileRedaction
from seatrial.errors import StoreUnavailable
from seatrial.ports.blobs import Blobs
from seatrial.system.fair_threads import FairThreads, yield_turn
from seatrial.system.removal import remove_tree

log = logging.getLogger(__name__)

_QUICK, _LONG = 4, 1
_MOST_IN_RESULT = 200
_LONGEST_IN_RESULT = 32 << 10
"""Maximum characters of the names in a result. Beyond either limit, all files are listed in the blobs."""
_RETRY_SEC = 0.5
_SLOWEST_RETRY_SEC = 5.0
_MEDIA_TYPES = {
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".txt": "text/plain",
    ".log": "text/plain",
    ".cast": "application/x-asciicast",
    ".md": "text/markdown",
    ".toml": "application/toml",
    ".png": "image/png",
}


@dataclass(frozen=True, slots=True)
class SavedFiles:
    """The saved files of a try, and those left out."""

    files: tuple[StoredFile, ...] = ()
    listing: FileListing | None = None
    left_out: FilesLeftOut | None = None


@dataclass(slots=True)
class _Plan:
    """Files without secrets, in one folder, under their final names."""

    folder: Path
    files: list[StoredFile] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return [kept_name(file) for file in self.files]


class FileSaver:
    """There is one per worker."""

    def __init__(self, blobs: Blobs, limits: SaveLimits | None = None, patience_sec: float = 120.0) -> None:
        self._blobs = blobs
        self._limits = limits or SaveLimits()
        self._patience_sec = patience_sec
        self._threads = FairThreads("save-files", _QUICK, _LONG)

    async def save(self, prefix: str, root: Path, secrets: Sequence[str]) -> SavedFiles:
        """Moves regular files below ``root`` to ``prefix/`` in the blobs. Never raises."""
        redaction = FileRedaction(secrets)
        left_out = LeftOut(redaction.name)
        try:
            plan = await self._threads.run(_prepare, prefix, root, redaction, self._limits, left_out)
            files = await self._take(prefix, plan, left_out)
            files, listing = await self._listed(prefix, files, left_out)
        except Exception as fault:
            log.exception("The files of a try could not be saved")
            left_out.add("*", _reason(fault))
            return SavedFiles(left_out=left_out.summary())
        return SavedFiles(tuple(files), listing, left_out.summary())

    async def remove(self, directory: Path) -> None:
        """Never raises. What cannot be removed now is removed after the worker has ended."""
        try:
            if os.path.lexists(directory):
                await self._threads.run(remove_tree, directory)
        except Exception:
            log.exception("The directory of a try could not be removed")

    async def _take(self, prefix: str, plan: _Plan, left_out: LeftOut) -> list[StoredFile]:
        """Takes the whole folder, or each file alone if that fails."""
        if not plan.files:
            return []
        try:
            sizes = await self._blobs.take_folder(prefix, plan.folder, plan.names)
            return [_sized(file, size) for file, size in zip(plan.files, sizes, strict=True)]
        except Exception as fault:
            log.warning("The files of a try are saved one by one: %s", _reason(fault))
        taken: list[StoredFile] = []
        patience = _Patience(self._patience_sec)
        for number, file in enumerate(plan.files):
            try:
                taken.append(await self._take_one(prefix, plan.folder, file, patience))
            except StoreUnavailable as fault:
                rest = plan.files[number:]
                left_out.add(rest[0].path, f"{_reason(fault)} Waited {self._patience_sec:g} s for it.", len(rest))
                break
            except Exception as fault:
                left_out.add(file.path, _reason(fault))
        return taken

    async def _take_one(self, prefix: str, folder: Path, file: StoredFile, patience: _Patience) -> StoredFile:
        key, source = f"{prefix}/{kept_name(file)}", folder / kept_name(file)
        while True:
            try:
                if not source.exists():  # it was taken before the blob store stopped answering
                    return _sized(file, (await self._blobs.info(key)).size)
                return _sized(file, await self._blobs.take_file(key, source))
            except StoreUnavailable:
                if not await patience.wait():
                    raise

    async def _listed(
        self, prefix: str, files: list[StoredFile], left_out: LeftOut
    ) -> tuple[list[StoredFile], FileListing | None]:
        """The files that the result lists, and the place of the full list."""
        some = _first_files(files)
        if len(some) == len(files):
            return files, None
        listing = FileListing(key=listing_key(prefix), count=len(files), bytes=sum(file.size for file in files))
        content = json.dumps([file.model_dump(mode="json") for file in files], ensure_ascii=False).encode()
        patience = _Patience(self._patience_sec)
        while True:
            try:
                await self._blobs.put_bytes(listing.key, content)
                return some, listing
            except StoreUnavailable as fault:
                if not await patience.wait():
                    left_out.add("*", f"The list of files could not be saved: {_reason(fault)}", len(files) - len(some))
                    return some, None


class _Patience:
    """Pauses between repeated calls, up to a total time."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._pause = _RETRY_SEC

    async def wait(self) -> bool:
        """Pauses. Returns whether there is time for another call."""
        left = self._until - time.monotonic()
        if left <= 0:
            return False
        await asyncio.sleep(min(self._pause, left))
        self._pause = min(2 * self._pause, _SLOWEST_RETRY_SEC)
        return True


def kept_name(file: StoredFile) -> str:
    """The name below the prefix of the try in the blobs."""
    return file.key or file.path


def listing_key(prefix: str) -> str:
    """The key of the list of files. No file of a try can have it."""
    return f"{prefix}.files.json"


def media_type(name: str) -> str:
    return _MEDIA_TYPES.get(os.path.splitext(name)[1].lower(), "application/octet-stream")  # noqa: PTH122


def _prepare(prefix: str, root: Path, redaction: FileRedaction, limits: SaveLimits, left_out: LeftOut) -> _Plan:
    """Blocking. Returns the directory of the try if all files keep their names, otherwise a new folder in it that
    contains only the files to save."""
    names = Names(prefix)
    ready: list[tuple[Found, StoredFile]] = []
    for found in find_files(root, limits, left_out):
        yield_turn()
        path = redaction.name(found.path)
        try:
            size = redaction.clean(root / found.path)
        except OSError as error:  # a file that cannot be read completely is never saved
            left_out.add(path, f"It cannot be read: {error.strerror}.")
            continue
        shown, key = names.of(path)
        file = StoredFile(path=shown, size=size, media_type=media_type(path), key="" if key == shown else key)
        ready.append((found, file))
    ready.sort(key=lambda pair: pair[1].path)
    if left_out.summary() is None and all(found.path == kept_name(file) for found, file in ready):
        return _Plan(root, [file for _, file in ready])
    return _staged(root, ready, names, left_out)


def _staged(root: Path, ready: list[tuple[Found, StoredFile]], names: Names, left_out: LeftOut) -> _Plan:
    plan = _Plan(Path(tempfile.mkdtemp(prefix="kept-", dir=root)))
    plan.folder.chmod(0o755)
    for found, file in ready:
        yield_turn()
        try:
            plan.files.append(_moved(root / found.path, plan.folder, file, names))
        except OSError as error:
            left_out.add(found.path, f"It cannot be moved: {error.strerror}.")
    return plan


def _moved(source: Path, folder: Path, file: StoredFile, names: Names) -> StoredFile:
    for wanted in (file, file.model_copy(update={"key": names.another_key(file.path)})):
        target = folder / kept_name(wanted)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
            return wanted
        except OSError as error:
            problem = error
    raise problem


def _sized(file: StoredFile, size: int) -> StoredFile:
    return file if file.size == size else file.model_copy(update={"size": size})


def _first_files(files: list[StoredFile]) -> list[StoredFile]:
    if len(files) <= _MOST_IN_RESULT and sum(len(file.path) + len(file.key) for file in files) <= _LONGEST_IN_RESULT:
        return files
    some: list[StoredFile] = []
    room = _LONGEST_IN_RESULT
    for file in sorted(files, key=lambda file: rank(file.path))[:_MOST_IN_RESULT]:
        room -= len(file.path) + len(file.key)
        if room < 0:
            break
        some.append(file)
    return some


def _reason(fault: Exception) -> str:
    first = str(fault).strip().splitlines()[:1]
    return first[0] if first else type(fault).__name__
