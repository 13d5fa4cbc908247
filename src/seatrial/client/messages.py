"""Parses server-sent events, without I/O. Both drivers feed it what they receive."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from seatrial.domain.event import Event
from seatrial.domain.frozen import Frozen
from seatrial.domain.output import Output
from seatrial.errors import SeatrialError
from seatrial.shapes.trials import Gap

END, OUTPUT, GAP = "end", "trial.output", "gap"


class Message(Frozen):
    """One message of a stream."""

    id: str
    """Position in the stream: reconnecting with it resumes after this message."""
    kind: str
    body: Event | Output | Gap
    """An event, a piece of live output, or a note that output was missed."""


class MessageReader:
    """Turns pieces of a stream into messages. Only a line feed ends a line, whatever else the text contains."""

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self.ended = False
        """Whether the service sent ``end``."""
        self._rest = b""
        self._fields: dict[str, str] = {}

    def feed(self, piece: bytes) -> Iterator[Message]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if message := self._take(line.rstrip(b"\r").decode()):
                yield message

    def _take(self, line: str) -> Message | None:
        if line:
            name, _, value = line.partition(":")
            if name:  # otherwise a comment
                self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        self.last_id = fields.get("id", self.last_id)
        kind = fields.get("event", "")
        self.ended = self.ended or kind == END
        return _message(self.last_id, kind, fields["data"]) if "data" in fields and kind != END else None


def _message(message_id: str, kind: str, data: str) -> Message:
    try:
        return Message(id=message_id, kind=kind, body=_body(kind, data))
    except ValidationError as error:
        raise SeatrialError(
            f"Cannot parse a message of the kind {kind!r}.", fix="Use the same version on both sides."
        ) from error


def _body(kind: str, data: str) -> Event | Output | Gap:
    if kind == OUTPUT:
        return Output.model_validate_json(data)
    return Gap.model_validate_json(data) if kind == GAP else Event.model_validate_json(data)
