"""Reads what a running try has written since the last look, in pieces.

``engine.live.watch`` calls it. This module remembers how far it has read each file. It leaves an incomplete character,
an incomplete line of a recording, and a possible beginning of a secret for the next look.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from seatrial.domain.output import NewOutput, OutputStream
from seatrial.domain.trial import Trial
from seatrial.engine.trials.redaction import Redaction
from seatrial.system.growing_files import LONGEST_READ, FileView, look_into

PIECE = 16 << 10
"""Approximate maximum length of one piece."""
_AT_ONCE = 64 << 10
"""Maximum bytes of one file in one look."""
_FAR_BEHIND = 512 << 10
"""If more bytes than this are waiting, the middle is skipped, so that viewers see the newest output."""
_MOST_FILES = 32
_FOLDERS = ("", "agent/", "verifier/")
_EVENTS = ("o", "i", "m", "r")
_TEXTS = (".txt", ".log", ".jsonl")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def stream_of(name: str) -> OutputStream | None:
    """The stream of a file, by its path; ``None`` for files that are not shown."""
    folder, _, rest = name.rpartition("/")
    match folder:
        case "":
            return {"trial.log": OutputStream.LOG, "build.log": OutputStream.BUILD}.get(rest)
        case "agent" if rest.endswith(".cast"):
            return OutputStream.TERMINAL
        case "agent" if rest.endswith(_TEXTS):
            return OutputStream.AGENT
        case "verifier" if rest.endswith(_TEXTS) and not rest.startswith("reward"):
            return OutputStream.VERIFIER
    return None


def is_shown(name: str) -> bool:
    return stream_of(name) is not None


@dataclass(slots=True)
class _Place:
    """How far a file was read."""

    offset: int = 0
    inside: bool = False
    """The file was read inside the sandbox. A copy outside may be older."""
    in_line: bool = False
    """The position is inside a line whose beginning was skipped."""


class Tail:
    """The files of one try."""

    def __init__(self, trial: Trial, directory: Path, redaction: Redaction) -> None:
        self._trial = trial
        # Plain texts: with hundreds of tries, joining paths would be most of the work.
        self._folders = [(folder, f"{directory}/{folder}".rstrip("/")) for folder in _FOLDERS]
        self._redaction = redaction
        self._places: dict[str, _Place] = {}

    @property
    def seen(self) -> Mapping[str, int]:
        return {name: place.offset for name, place in self._places.items()}

    def read(self, inside: Sequence[FileView] | None, last: bool = False) -> list[NewOutput]:
        """Blocking. ``inside`` are the files seen in the sandbox, if it answered. ``last`` holds nothing back."""
        shown = {view.name: view for view in inside or ()}
        pieces = [piece for view in shown.values() for piece in self._new_output(view, True, last)]
        names = set(shown)
        for view in self._here():
            names.add(view.name)
            if view.name not in shown:
                pieces += self._new_output(view, False, last)
        if inside is not None:
            self._places = {name: place for name, place in self._places.items() if name in names}
        return pieces

    def _here(self) -> Iterator[FileView]:
        seen = self.seen
        for prefix, path in self._folders:
            try:
                directory = os.open(path, _DIRECTORY)
            except OSError:
                continue
            try:
                yield from look_into(directory, prefix, seen, is_shown)
            finally:
                os.close(directory)

    def _new_output(self, view: FileView, inside: bool, last: bool) -> list[NewOutput]:
        stream = stream_of(view.name)
        if stream is None or (view.name not in self._places and len(self._places) >= _MOST_FILES):
            return []
        place = self._places.setdefault(view.name, _Place())
        if view.start < place.offset:
            if place.inside and not inside:
                return []
            place.offset, place.in_line = view.start, False
        place.inside = place.inside or inside
        texts = self._cut(view, place, stream, last)
        note = self._skip(view, place, stream, last)
        return [
            NewOutput(trial_id=self._trial.id, attempt=self._trial.try_number, stream=stream, text=text)
            for text in (*texts, *note)
        ]

    def _cut(self, view: FileView, place: _Place, stream: OutputStream, last: bool) -> list[str]:
        data = view.data
        if place.in_line:
            rest = data.find(b"\n") + 1
            if not rest:
                place.offset += len(data)
                return []
            place.offset, place.in_line, data = place.offset + rest, False, data[rest:]
        if stream is OutputStream.TERMINAL:
            return self._lines(data, place)
        end = len(data) if last else self._redaction.safe_end(_whole_characters(data[:_AT_ONCE]))
        place.offset += end
        return list(_pieces(_text(self._redaction.clean(data[:end]))))

    def _lines(self, data: bytes, place: _Place) -> list[str]:
        """Events of a recording, whole lines only."""
        end = data.rfind(b"\n", 0, _AT_ONCE) + 1 or data.find(b"\n") + 1
        if not end and len(data) >= LONGEST_READ:
            place.offset, place.in_line = place.offset + len(data), True
            return []
        place.offset += end
        lines = self._redaction.clean(data[:end]).decode("utf-8", "replace").splitlines(keepends=True)
        return list(_grouped(part for line in lines for part in _short_events(line)))

    def _skip(self, view: FileView, place: _Place, stream: OutputStream, last: bool) -> list[str]:
        behind = view.size - place.offset
        if behind <= (_AT_ONCE if last else _FAR_BEHIND):
            return []
        place.offset, place.in_line = view.size - _AT_ONCE, True
        note = f"… {behind - _AT_ONCE} bytes were skipped; the saved file will contain them …"
        return [json.dumps([0.0, "m", note]) + "\n" if stream is OutputStream.TERMINAL else f"\n{note}\n"]


def _whole_characters(data: bytes) -> bytes:
    """Removes an incomplete character at the end."""
    for length in range(1, min(4, len(data) + 1)):
        first = data[-length]
        if first >= 0xC0:
            whole = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
            return data[:-length] if length < whole else data
        if first < 0x80:
            break
    return data


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "\N{SYMBOL FOR NULL}")


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


def _grouped(lines: Iterable[str]) -> Iterator[str]:
    piece: list[str] = []
    length = 0
    for line in lines:
        if piece and length + len(line) > PIECE:
            yield "".join(piece)
            piece, length = [], 0
        piece.append(line)
        length += len(line)
    if piece:
        yield "".join(piece)


def _short_events(line: str) -> Iterator[str]:
    """Splits a long event into several at the same time. A long line that is not an event is left out."""
    if len(line) <= PIECE:
        yield line
        return
    with suppress(ValueError, TypeError, RecursionError):
        at, kind, data = json.loads(line)
        if not isinstance(at, int | float) or kind not in _EVENTS or not isinstance(data, str):
            return  # each part would repeat a long one
        for start in range(0, len(data), PIECE // 8):
            yield json.dumps([at, kind, data[start : start + PIECE // 8]]) + "\n"
