"""Reads a stream on its way: passes whole events on, counts, and can end the stream early.

A meter holds back the bytes of an event until it is complete. Providers send whole events, so nothing waits for that;
and a stream that is cut ends between two events, where every client accepts an end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seatrial.domain.model_calls.model_call import CallUsage
from seatrial.gateway.wire.event_stream import LONGEST_EVENT, EventSplitter, event_data
from seatrial.gateway.wire.fields import error_text
from seatrial.gateway.wire.json_text import read_answer_object
from seatrial.gateway.wire.prompt_size import BYTES_PER_TOKEN

if TYPE_CHECKING:
    from seatrial.gateway.wire.format import Answer


class StreamMeter(ABC):
    """For one stream. The result does not depend on how the bytes were split into pieces."""

    def __init__(self, read_answer: Callable[[bytes], Answer], longest_event: int = LONGEST_EVENT) -> None:
        """``read_answer``: how the format reads an answer that is no stream."""
        self._splitter = EventSplitter(longest_event)
        self._read_answer = read_answer
        self._whole: Answer | None = None
        """Some servers answer with one object where a stream was asked for."""
        self._events = 0
        self._usage = CallUsage()
        self._pieces = 0
        self._bytes = 0
        self._error: str | None = None
        self.ended = False
        """Whether the stream told its own end."""

    def feed(self, piece: bytes) -> bytes:
        """What is passed on of the stream so far: whole events, without those that only we asked for."""
        return b"".join(part for part, whole in self._splitter.feed(piece) if not whole or self._passes(part))

    def end(self) -> bytes:
        """The provider closed the stream: what is left of it."""
        left = self._splitter.rest()
        return left if self._splitter.passing or self._passes(left) else b""

    @property
    def answer(self) -> Answer:
        """What the stream said so far. Until it reports its whole usage, at least the output that was seen counts:
        Anthropic reports one token of output at the beginning, and nothing more before the end."""
        if self._whole is not None:
            return self._whole
        told, seen = self._told_answer(), self.output_tokens_so_far
        made = told.usage.output_tokens
        if self._told_all or made is None or made >= seen:
            return told
        return replace(told, usage=told.usage.model_copy(update={"output_tokens": seen}), cost_usd=None)

    @property
    def _told_all(self) -> bool:
        """Whether the reported usage is that of the whole answer."""
        return self.ended

    @abstractmethod
    def _told_answer(self) -> Answer: ...

    @property
    def output_tokens_so_far(self) -> int:
        """An estimate, until the provider reports the number. Hidden reasoning is not in it."""
        seen = max(self._pieces, self._bytes // BYTES_PER_TOKEN)
        return max(seen, self._usage.output_tokens or 0)

    def cut(self, reason: str) -> bytes:
        """The last bytes of a stream that ends here, as if its length limit had been reached.

        The bytes of an incomplete event are dropped. Nothing is passed on afterwards."""
        self._splitter.rest()
        return b"" if self.ended else self._closing(reason)

    def broken(self, reason: str) -> bytes:
        """The last bytes of a stream that its provider broke off: an error that the client sees."""
        self._splitter.rest()
        return b"" if self.ended else self._failing(reason)

    def _passes(self, event: bytes) -> bool:
        name, data = event_data(event)
        if not data:
            self._perhaps_whole(event)
            return True
        self._events += 1
        if data.startswith(b"[DONE]"):
            self.ended = True
            return True
        content = read_answer_object(data)
        return content is None or self._read(name, content)

    def _perhaps_whole(self, text: bytes) -> None:
        if not self._events and text.lstrip().startswith(b"{") and read_answer_object(text) is not None:
            self._whole, self.ended = self._read_answer(text), True

    def _saw(self, text: Any) -> None:
        """Counts a piece of the output."""
        if isinstance(text, str) and text:
            self._pieces += 1
            self._bytes += len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))

    def _failed(self, error: Any) -> None:
        self._error = error_text(error) or self._error or "an error without a message"

    @abstractmethod
    def _read(self, name: str, content: dict[str, Any]) -> bool:
        """Learns from one event. ``False`` takes it out of the stream."""

    @abstractmethod
    def _closing(self, reason: str) -> bytes: ...

    @abstractmethod
    def _failing(self, reason: str) -> bytes: ...
