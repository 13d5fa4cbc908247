"""The logs of a try as one text.

The output of the verifier comes last and is cut least, because it says why a try passed or failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from seatrial.domain.output import Output, OutputStream
from seatrial.domain.result import StoredFile
from seatrial.domain.terminal_text import readable, shown
from seatrial.domain.trial import TrialState
from seatrial.engine.trials.trial_files import KeptFiles, TryFiles
from seatrial.errors import NotFound
from seatrial.ports.store import OutputStore, TrialRow

_PLAIN = (".log", ".txt", ".pane", ".out", ".err")
_PLACES = ("build.log", "trial.log", "exception.txt", "agent/", "verifier/", "steps/")
_EPISODE = re.compile(r"(?:^|/)episode-\d+/")
_LONGEST_FILE = 256 << 10
_LONGEST = 4 << 20
_LIVE_PIECES = 500
_GOES_ON = "[the trial is still running; this log is not complete]\n"
_REMOVED = "[this file was removed by the clean-up of old files]\n"
_BEFORE = "[logs of an earlier try; the next one has not started]\n"


async def log_text(files: TryFiles, output: OutputStore, row: TrialRow) -> str:
    """The latest live output of a running trial; otherwise the end of each log of its last try."""
    trial = row.trial
    if trial.state is TrialState.RUNNING:
        pieces = await output.read([trial.id], limit=_LIVE_PIECES)
        return _as_heard(piece for piece in pieces if piece.attempt == trial.try_number) + _GOES_ON
    try:
        kept = await files.kept(trial.id)
    except NotFound:  # it has not been run yet
        return ""
    logs = await read_logs(files, kept)
    return logs if trial.state is TrialState.ENDED else _BEFORE + logs


async def read_logs(files: TryFiles, kept: KeptFiles) -> str:
    room = _LONGEST
    parts: list[str] = []
    for file in sorted(filter(_belongs, kept.files), key=_place, reverse=True):
        part = f"==> {file.path} <==\n{readable(await tail(files, kept, file, min(_LONGEST_FILE, room)))}"
        room -= len(part)
        parts.append(part)
        if room <= 0:
            parts.append("[earlier logs are left out]")
            break
    return "\n\n".join(reversed(parts))


async def tail(files: TryFiles, kept: KeptFiles, file: StoredFile, length: int = _LONGEST_FILE) -> str:
    """The end of a log, with a note if the start was cut off."""
    start = max(file.size - length, 0)
    try:
        data = b"".join([piece async for piece in files.stream(kept, file, start, length)])
    except NotFound:
        return _REMOVED
    cut = f"[the first {start} bytes are left out]\n" if start else ""
    return cut + data.decode("utf-8", "replace")


def _as_heard(pieces: Iterable[Output]) -> str:
    """In order of arrival. When another stream follows an incomplete line, it starts a new line."""
    heard = []
    for stream, group in groupby(pieces, key=lambda piece: piece.stream):
        told = "".join(piece.text for piece in group)
        text = readable(shown(told) if stream is OutputStream.TERMINAL else told)
        heard.append(text if text.endswith("\n") or not text else f"{text}\n")
    return "".join(heard)


def _belongs(file: StoredFile) -> bool:
    return file.path.startswith(_PLACES) and file.path.endswith(_PLAIN) and not _EPISODE.search(file.path)


def _place(file: StoredFile) -> tuple[bool, int, str]:
    """Build, agent, verifier; for a task with steps, one step after the other."""
    order = next(index for index, place in enumerate(_PLACES) if file.path.startswith(place))
    return "verifier/" in file.path, order, file.path
