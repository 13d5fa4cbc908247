"""The kernel's netlink wire format: messages, attributes, and a socket that sends many requests in one system call.

``links`` (interfaces, addresses, routes) and ``firewall`` (set elements) speak it, because a process started for each
step costs more than the step: ``ip`` and ``nft`` take milliseconds, a batch of requests takes microseconds. Nothing in
here knows what a sandbox is.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

ROUTE = 0
NETFILTER = 12

ACK = 0x004
DUMP = 0x300
CREATE = 0x400
EXCLUSIVE = 0x200
_REQUEST = 0x001
_CAPPED = 0x100
"""On an answer: the request is not echoed in it."""
_WITH_ATTRIBUTES = 0x200

_ERROR = 2
_DONE = 3
_SOL_NETLINK = 270
_CAP_ACK = 10
_EXT_ACK = 11
_STRICT_CHECK = 12
_ERROR_MESSAGE = 1
_NESTED = 0x8000
_TYPE_MASK = 0x3FFF

_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_BUFFER = 1 << 20
_PATIENCE_SEC = 10


class NetlinkError(OSError):
    """The kernel refused a request; ``errno`` says why, ``request`` which one of the batch it was."""

    def __init__(self, code: int, hint: str, request: int) -> None:
        super().__init__(code, f"{os.strerror(code)}{f' ({hint})' if hint else ''}")
        self.request = request


@dataclass(frozen=True, slots=True)
class Message:
    """One request, or one answer of a dump."""

    kind: int
    body: bytes
    flags: int = 0


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute, padded to the next multiple of four."""
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + b"\0" * (-length % 4)


def nested(kind: int, *attributes: bytes) -> bytes:
    return attribute(kind | _NESTED, b"".join(attributes))


def text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def number(kind: int, value: int) -> bytes:
    """A 32-bit number in the machine's byte order."""
    return attribute(kind, struct.pack("=I", value))


def attributes(data: bytes) -> dict[int, bytes]:
    """The attributes in a piece of an answer, by kind; of a repeated one, the last."""
    return dict(iterate(data))


def iterate(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size:
            return
        yield kind & _TYPE_MASK, data[offset + _ATTRIBUTE.size : offset + length]
        offset += length + (-length % 4)


class NetlinkSocket:
    """A socket to one kernel subsystem of the network namespace that the calling thread is in when it is made.

    It stays bound to that namespace, whichever thread uses it later. Not for use by two threads at once.
    """

    def __init__(self, protocol: int) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        self._sequence = 0
        for option in (_CAP_ACK, _EXT_ACK, _STRICT_CHECK):
            self._socket.setsockopt(_SOL_NETLINK, option, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self._socket.settimeout(_PATIENCE_SEC)
        self._socket.bind((0, 0))

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def request(self, messages: Sequence[Message], *, tolerate: frozenset[int] = frozenset()) -> None:
        """Has all of them done, in order; then raises for the first that failed with an error not tolerated."""
        outcomes = self._acknowledged(messages, [True] * len(messages)) if messages else {}
        for index, (code, hint) in sorted(outcomes.items()):
            if code and code not in tolerate:
                raise NetlinkError(code, hint, index)

    def transact(self, begin: Message, messages: Sequence[Message], end: Message) -> None:
        """Has all of them done or none; only ``messages`` are acknowledged."""
        batch = [begin, *messages, end]
        outcomes = self._acknowledged(batch, [False, *([True] * len(messages)), False])
        for index, (code, hint) in sorted(outcomes.items()):
            if code:
                raise NetlinkError(code, hint, index - 1)

    def dump(self, message: Message) -> list[Message]:
        """Everything the kernel lists in answer to one request."""
        self._sequence += 1
        sequence = self._sequence
        self._socket.send(_packed(message, _REQUEST | DUMP, sequence))
        found: list[Message] = []
        while True:
            for answered, answer in self._answers():
                if answered != sequence:
                    continue
                if answer.kind == _DONE:
                    return found
                if answer.kind == _ERROR:
                    code, hint = _outcome(answer)
                    raise NetlinkError(code, hint, 0)
                found.append(answer)

    def _acknowledged(self, messages: Sequence[Message], asked: Sequence[bool]) -> dict[int, tuple[int, str]]:
        first = self._sequence + 1
        self._sequence += len(messages)
        self._socket.send(
            b"".join(
                _packed(message, _REQUEST | (ACK if asked[index] else 0), first + index)
                for index, message in enumerate(messages)
            )
        )
        outcomes: dict[int, tuple[int, str]] = {}
        while len(outcomes) < sum(asked):
            for sequence, answer in self._answers():
                index = sequence - first
                if answer.kind == _ERROR and 0 <= index < len(messages):
                    outcomes[index] = _outcome(answer)
                    if not asked[index]:  # the batch as a whole was refused; nothing more will come
                        return outcomes
        return outcomes

    def _answers(self) -> Iterator[tuple[int, Message]]:
        data = self._socket.recv(_BUFFER)
        offset = 0
        while offset + _HEADER.size <= len(data):
            length, kind, flags, sequence, _ = _HEADER.unpack_from(data, offset)
            yield sequence, Message(kind, data[offset + _HEADER.size : offset + length], flags)
            offset += length + (-length % 4)


def _packed(message: Message, flags: int, sequence: int) -> bytes:
    length = _HEADER.size + len(message.body)
    header = _HEADER.pack(length, message.kind, message.flags | flags, sequence, 0)
    return header + message.body + b"\0" * (-length % 4)


def _outcome(answer: Message) -> tuple[int, str]:
    """The error number (0 for success) and the kernel's own words, where it gave some."""
    (code,) = struct.unpack_from("=i", answer.body)
    hint = ""
    if answer.flags & _WITH_ATTRIBUTES:
        echoed = 4 + _HEADER.size
        if not answer.flags & _CAPPED:
            (length,) = struct.unpack_from("=I", answer.body, 4)
            echoed = 4 + length
        hint = attributes(answer.body[echoed:]).get(_ERROR_MESSAGE, b"").rstrip(b"\0").decode(errors="replace")
    return -code, hint
