"""Answers the calls of a trial from the full record of another one.

A request is found by its path and its digest, which leaves out volatile parts. Equal requests get their answers in the
order of the record. A request that is not there is a miss. Then either the provider is asked, or the agent gets an
error that shows the first difference to the nearest recorded request. After such an error every later call gets one,
too, because the agent no longer does what the recorded one did.

The record's file is on this machine, and stays open while the trial runs. Bodies are read when they are needed.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from seatrial.domain.model_calls.record import ReplayMiss
from seatrial.domain.model_calls.replay import Replay, Replayed
from seatrial.engine.trials.redaction import Redaction
from seatrial.errors import InvalidInput
from seatrial.gateway.forward import Accepted, is_stream
from seatrial.gateway.head import Fields
from seatrial.gateway.recording import HEAD, read_bytes
from seatrial.gateway.upstream import UpstreamFault
from seatrial.gateway.wire import (
    DIGEST_RULES,
    BadCall,
    Difference,
    JsonObject,
    digest_of,
    first_difference,
    read_object,
)

_MOST_COMPARED = 20
"""How many recorded requests are compared to find the nearest: the next ones, so a nearer one is unlikely."""
_LONGEST_MISS = 1_000


@dataclass(slots=True)
class RecordedAnswer:
    """The answer of one recorded call."""

    file: int
    number: int
    status: int = 0
    fields: Fields = ()
    places: list[tuple[int, int]] = field(default_factory=list)
    """Where the pieces are in the file."""
    error: str | None = None
    over_budget: bool = False
    broken: bool = False
    """The connection was cut in the middle of the answer."""
    given_up: bool = False
    """The model's service had failed for too long."""

    def accepted(self, *, streams: bool) -> Accepted:
        """The answer as if the provider had sent it."""
        pieces = self._pieces()
        if not is_stream(streams, self.status, self.fields):
            return Accepted(self.status, "", self.fields, b"".join(pieces), self._rest(()) if self.broken else None)
        return Accepted(self.status, "", self.fields, next(pieces, b""), self._rest(pieces))

    def _pieces(self) -> Iterator[bytes]:
        for place, length in self.places:
            yield read_bytes(json.loads(os.pread(self.file, length, place))) or b""

    async def _rest(self, pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece
            await asyncio.sleep(0)  # lets the streams of other calls go on
        if self.broken:
            raise UpstreamFault("as in the record")


@dataclass(slots=True)
class _Entry:
    """One recorded call."""

    path: str
    digest: str
    place: tuple[int, int]
    """Where its request is in the file."""
    answer: RecordedAnswer
    is_whole: bool = False
    """Whether its whole answer was recorded."""
    is_used: bool = False


class CallReplay:
    """Of one try."""

    def __init__(self, plan: Replay, entries: Iterable[_Entry], file: int, secrets: Iterable[str] = ()) -> None:
        self._plan = plan
        self._entries = [entry for entry in entries if entry.is_whole]
        self._file = file
        self._redaction = Redaction(secrets)
        self._waiting: defaultdict[tuple[str, str], deque[_Entry]] = defaultdict(deque)
        for entry in self._entries:
            self._waiting[entry.path, entry.digest].append(entry)
        self._known = frozenset(self._waiting)
        self._hits = 0
        self._misses = 0
        self._first_miss = ""

    @classmethod
    async def open(cls, plan: Replay, path: Path, secrets: Iterable[str] = ()) -> Self:
        """Reads the record in a thread: it may have hundreds of megabytes."""
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return cls(plan, await asyncio.to_thread(lambda: list(_read(file).values())), file, secrets)
        except BaseException:
            os.close(file)
            raise

    @property
    def told(self) -> Replayed:
        """How it went so far, without costs."""
        return Replayed(
            trial=self._plan.trial, hits=self._hits, misses=self._misses, first_miss=self._first_miss[:_LONGEST_MISS]
        )

    @property
    def failure(self) -> str | None:
        """Why the trial cannot go on."""
        return self._first_miss or None if self._plan.miss is ReplayMiss.ERROR else None

    def take(self, path: str, digest: str) -> RecordedAnswer | None:
        """The recorded answer to a request. ``None`` for a miss, and after one that ends the trial."""
        waiting = self._waiting.get((path, digest))
        if not waiting or self.failure is not None:
            return None
        entry = waiting.popleft()
        entry.is_used = True
        self._hits += 1
        return entry.answer

    async def miss(self, path: str, digest: str, asked: JsonObject) -> str | None:
        """The words of the refusal; ``None`` if the provider is asked instead."""
        if self.failure is not None:
            return self.failure
        self._misses += 1
        if not self._first_miss:
            words = await asyncio.to_thread(self._words, path, digest, asked)
            self._first_miss = self._first_miss or self._redaction.clean(words.encode()).decode(errors="replace")
        return self.failure

    def close(self) -> None:
        os.close(self._file)

    def _words(self, path: str, digest: str, asked: JsonObject) -> str:
        about = f"Replay of trial {self._plan.trial}: this request is not in its record."
        if (path, digest) in self._known:
            times = sum((entry.path, entry.digest) == (path, digest) for entry in self._entries)
            return f"{about} The record answers it {times} times, and it was asked once more."
        nearest = max(self._compared(path, asked), key=lambda pair: pair[1].depth, default=None)
        if nearest is None:
            return f"{about} No recorded call that is left is one of {path}."
        number, difference = nearest
        return f"{about} First difference to its call {number}, at {difference}."

    def _compared(self, path: str, asked: JsonObject) -> Iterator[tuple[int, Difference]]:
        there = [entry for entry in self._entries if entry.path == path]
        left = [entry for entry in there if not entry.is_used][:_MOST_COMPARED]
        for entry in left or there[-_MOST_COMPARED:]:
            with suppress(BadCall):
                found = first_difference(read_object(_request(self._file, entry.place)), asked)
                if found is not None:
                    yield entry.answer.number, found


def _request(file: int, place: tuple[int, int]) -> bytes:
    return str(json.loads(os.pread(file, place[1], place[0]))["request"]).encode("utf-8", "surrogatepass")


def _read(file: int) -> dict[int, _Entry]:
    """The calls of a record by their number. The record is not trusted: others may be able to write to the blobs."""
    entries: dict[int, _Entry] = {}
    rules: object = None
    place = 0
    with os.fdopen(os.dup(file), "rb") as lines:
        lines.seek(0)
        for text in lines:
            here, place = (place, len(text)), place + len(text)
            with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError, BadCall):
                line = json.loads(text)
                rules = line.get(HEAD, rules)
                _learn(entries, line, here, file, knows_rules=rules == DIGEST_RULES)
    if rules is None:
        raise InvalidInput("This is not the record of a trial.", field="replay")
    return entries


def _learn(
    entries: dict[int, _Entry], line: dict[str, Any], place: tuple[int, int], file: int, *, knows_rules: bool
) -> None:
    number = line.get("n")
    if not isinstance(number, int):
        return
    if "request" in line:
        # Digests of another version leave out other parts.
        digest = str(line["digest"]) if knows_rules else digest_of(read_object(str(line["request"]).encode()))
        entries[number] = _Entry(str(line["path"]), digest, place, RecordedAnswer(file, number))
        return
    entry = entries[number]
    answer = entry.answer
    if "status" in line:
        answer.status = int(line["status"])
        answer.fields = tuple((str(name), str(value)) for name, value in line["headers"])
    elif "end" in line:
        end = line["end"]
        answer.error = str(end["error"]) if "error" in end else None
        answer.over_budget, answer.broken = bool(end.get("over_budget")), bool(end.get("broken"))
        answer.given_up = bool(end.get("given_up"))
        entry.is_whole = 200 <= answer.status < 600
    else:
        answer.places.append(place)
