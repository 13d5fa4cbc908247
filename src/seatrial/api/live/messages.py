"""Events as server-sent messages, serialised once for all listeners. Used by the broadcast and by each stream."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

from seatrial.domain.event import Event, EventKind
from seatrial.domain.output import Output
from seatrial.errors import InvalidInput

_ENDS = (EventKind.JOB_ENDED, EventKind.TRIAL_ENDED)
_REOPENING = frozenset(
    {EventKind.TRIAL_ADDED, EventKind.TRIAL_RETRY, EventKind.TRIAL_RELEASED, EventKind.TRIAL_CLAIMED}
)

OUTPUT = "trial.output"
"""The kind of live output; all other kinds are events."""


@dataclass(slots=True)
class Position:
    """The last event and the last piece of live output that were sent."""

    event: int = 0
    output: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        if not text:
            return cls()
        found = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", text.strip(), re.ASCII)
        if found is None:
            raise InvalidInput("This is not a message id.", field="after", fix="An id looks like 120-0.")
        return cls(int(found[1]), int(found[2] or 0))

    def __str__(self) -> str:
        return f"{self.event}-{self.output}"


@dataclass(frozen=True, slots=True)
class Message:
    kind: str
    seq: int
    body: str
    """Everything except the id, which depends on the listener's position."""

    @property
    def is_output(self) -> bool:
        return self.kind == OUTPUT


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages in order, all events or all output. Listeners share it."""

    messages: tuple[Message, ...]
    turns: dict[EventKind, Message]
    """For the end of a job and of a trial: the last message that announces the end, or that more follows."""
    _written: dict[tuple[frozenset[str], int], bytes] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, facts: Iterable[Event | Output]) -> Self:
        return cls.made_of(tuple(map(message_of, facts)))

    @classmethod
    def made_of(cls, messages: tuple[Message, ...]) -> Self:
        turns = {}
        for message in messages:
            for end in _ENDS:
                if message.kind == end or message.kind in _REOPENING:
                    turns[end] = message
        return cls(messages, turns)

    def tell(self, position: Position, kinds: frozenset[str]) -> bytes:
        """The messages after this position; moves the position on. Without ``kinds``: all."""
        is_output = self.messages[0].is_output
        heard, other = (position.output, position.event) if is_output else (position.event, position.output)
        if self.messages[0].seq > heard:
            if (kinds, other) not in self._written:
                self._written[kinds, other] = _write(self.messages, other, kinds)
            text = self._written[kinds, other]
        else:
            text = _write(tuple(message for message in self.messages if message.seq > heard), other, kinds)
        last = max(heard, self.messages[-1].seq)
        if is_output:
            position.output = last
        else:
            position.event = last
        return text


def message_of(fact: Event | Output) -> Message:
    kind = fact.kind.value if isinstance(fact, Event) else OUTPUT
    return Message(kind, fact.seq, f"event: {kind}\ndata: {fact.model_dump_json()}\n\n")


def _write(messages: tuple[Message, ...], other: int, kinds: frozenset[str]) -> bytes:
    lines = []
    for message in messages:
        if not kinds or message.kind in kinds:
            last = f"{other}-{message.seq}" if message.is_output else f"{message.seq}-{other}"
            lines.append(f"id: {last}\n{message.body}")
    return "".join(lines).encode()
