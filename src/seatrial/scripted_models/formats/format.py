"""What the server needs of a wire format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from seatrial.scripted_models.answer import Answer, Asked
from seatrial.scripted_models.scripts import View
from seatrial.scripted_models.tools import Offered, shell_tool

PIECE = 40
"""Characters of a text in one event of a stream."""


class Format(Protocol):
    name: ClassVar[str]
    length_at: ClassVar[tuple[str, str] | None]
    """How the paths end that ask for the length of a prompt, and the name of the number in the reply."""

    def serves(self, path: str) -> bool:
        """Whether a ``POST`` to this path, without version and query, is a call of this format."""

    def read(self, path: str, body: Mapping[str, Any]) -> Asked:
        """Raises ``KeyError``, ``TypeError``, ``ValueError`` or ``AttributeError`` for a body of another shape."""

    def whole(self, answer: Answer, asked: Asked) -> dict[str, Any]: ...

    def events(self, answer: Answer, asked: Asked) -> Iterator[bytes]: ...

    def error(self, status: int, message: str, kind: str, code: str | None = None) -> dict[str, Any]:
        """``kind`` and ``code`` are OpenAI's."""


def view_of(messages: Sequence[Mapping[str, Any]], offered: Sequence[Offered]) -> View:
    return View(messages=tuple(messages), tools=bool(offered), tool=shell_tool(offered))


def tool_call(name: str, arguments: object) -> dict[str, Any]:
    """A call that the model made earlier, as ``View`` has it."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"type": "function", "function": {"name": name, "arguments": text}}


def pieces(text: str) -> Iterator[str]:
    yield from (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def event(content: Mapping[str, Any], name: str | None = None) -> bytes:
    data = f"data: {json.dumps(content)}\n\n"
    return (f"event: {name}\n{data}" if name else data).encode()
