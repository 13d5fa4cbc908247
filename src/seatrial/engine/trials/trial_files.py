"""Lists and reads the saved files of a try, for ``seatrial trial`` and the API.

A path is looked up in the list of saved files before anything is opened, so that no path leads elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

from pydantic import TypeAdapter

from seatrial.domain.frozen import Frozen
from seatrial.domain.result import FileListing, FilesLeftOut, StoredFile, Try
from seatrial.engine.trials.save_files import kept_name
from seatrial.errors import Conflict, NotFound
from seatrial.ports.blobs import Blobs
from seatrial.ports.store import TrialStore

_LOGS = ("trial.log", "agent/", "verifier/", "build.log", "exception.txt", "steps/")
_TEXT = (".log", ".txt", ".pane", ".json", ".jsonl", ".out", ".err")
_FILES = TypeAdapter(tuple[StoredFile, ...])


TRIALS = "trials"
"""The prefix of the files of all trials."""


def trial_prefix(trial_id: int) -> str:
    """The prefix of all files of a trial in the blobs."""
    return f"{TRIALS}/{trial_id}"


def try_prefix(trial_id: int, try_number: int) -> str:
    """The prefix of one try."""
    return f"{trial_prefix(trial_id)}/{try_number}"


class KeptFiles(Frozen):
    """The files of one try."""

    trial_id: int
    try_number: int
    files: tuple[StoredFile, ...]
    left_out: FilesLeftOut | None = None

    def find(self, path: str) -> StoredFile:
        for file in self.files:
            if file.path == path:
                return file
        raise NotFound(f"Try {self.try_number} of trial {self.trial_id} left no such file.")

    def first(self, *endings: str) -> StoredFile:
        """The file whose path ends like this. Of several, the one nearest to the top, then the first by name."""
        found = [file for file in self.files if file.path.endswith(endings)]
        if not found:
            raise NotFound(f"Try {self.try_number} of trial {self.trial_id} left none.")
        return min(found, key=lambda file: (file.path.count("/"), file.path))

    @property
    def logs(self) -> tuple[StoredFile, ...]:
        return tuple(file for file in self.files if file.path.startswith(_LOGS) and is_text(file.path))

    def key(self, file: StoredFile) -> str:
        return f"{try_prefix(self.trial_id, self.try_number)}/{kept_name(file)}"


class TryFiles:
    def __init__(self, trials: TrialStore, blobs: Blobs) -> None:
        self._trials = trials
        self._blobs = blobs

    async def kept(self, trial_id: int, number: int | None = None) -> KeptFiles:
        a_try = await ended_try(self._trials, trial_id, number)
        result = a_try.result
        if result is None:
            return KeptFiles(trial_id=trial_id, try_number=a_try.number, files=())
        files = result.files if result.file_listing is None else await self._listed(result.file_listing, result.files)
        return KeptFiles(trial_id=trial_id, try_number=a_try.number, files=files, left_out=result.files_left_out)

    async def _listed(self, listing: FileListing, some: tuple[StoredFile, ...]) -> tuple[StoredFile, ...]:
        """Reads the list of files. If it was removed, the result still names the first files."""
        try:
            return _FILES.validate_json(await self._blobs.read(listing.key))
        except (NotFound, ValueError):
            return some

    async def size(self, kept: KeptFiles, file: StoredFile) -> int:
        """The size of the stored file. Raises ``NotFound`` if it was removed."""
        return (await self._blobs.info(kept.key(file))).size

    def stream(self, kept: KeptFiles, file: StoredFile, start: int, length: int) -> AsyncIterator[bytes]:
        """Reads a range in pieces."""
        return self._blobs.stream(kept.key(file), start, max(0, min(length, file.size - start)))

    async def read_json(self, kept: KeptFiles, file: StoredFile, limit: int) -> Any:
        if file.size > limit:
            raise Conflict(f"{file.path} is too large to be read as a whole.", fix="Download the file instead.")
        content = await self._blobs.read(kept.key(file))
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise Conflict(f"{file.path} is not valid JSON.", fix="Download the file instead.") from error


async def ended_try(trials: TrialStore, trial_id: int, number: int | None) -> Try:
    """The try with this number, or the last one. It must have a result."""
    return choose_ended(await trials.tries(trial_id), trial_id, number)


def choose_ended(tries: Iterable[Try], trial_id: int, number: int | None) -> Try:
    chosen = [a_try for a_try in tries if a_try.result is not None and number in (None, a_try.number)]
    if not chosen:
        raise NotFound(f"Trial {trial_id} has no {'such' if number else 'ended'} try yet.")
    return chosen[-1]


def is_text(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return "." not in name or name.endswith(_TEXT)
