"""The kernel's netlink wire format: messages, attributes, and a socket that sends many requests in one system call.

``links`` and ``firewall`` use it because ``ip`` and ``nft`` take milliseconds per step, and a whole batch of requests
takes microseconds. This module does not know what a sandbox is.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

ROUTE = 0
NETFILTER = 12

CREATE = 0x400
EXCLUSIVE = 0x200
_REQUEST = 0x001
_ACK = 0x004
_DUMP = 0x300
_CAPPED = 0x100
"""On an answer: it does not repeat the request."""
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
    """The kernel refused a request. ``errno`` says why, ``request`` is its index in the batch."""

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
    """The attributes in a part of an answer, by kind. The last one of a kind counts."""
    found: dict[int, bytes] = {}
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size:
            break
        found[kind & _TYPE_MASK] = data[offset + _ATTRIBUTE.size : offset + length]
        offset += length + (-length % 4)
    return found


class NetlinkSocket:
    """A socket to one kernel subsystem, in the network namespace that the calling thread is in now.

    The socket stays in that namespace whichever thread uses it later. Two threads must not use it at once."""

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

    def __exit__(self, *exc: object) -> None:
        self.close()

    def request(self, messages: Sequence[Message], *, tolerate: frozenset[int] = frozenset()) -> None:
        """Sends all messages in order. Then raises for the first failure that is not in ``tolerate``."""
        if messages:
            self._send(messages, range(len(messages)), tolerate)

    def transact(self, begin: Message, messages: Sequence[Message], end: Message) -> None:
        """The kernel applies all messages or none. It acknowledges only ``messages``."""
        self._send([begin, *messages, end], range(1, len(messages) + 1))

    def dump(self, message: Message) -> list[Message]:
        """Everything that the kernel lists in answer to one request."""
        self._sequence += 1
        sequence = self._sequence
        self._socket.send(_packed(message, _REQUEST | _DUMP, sequence))
        found: list[Message] = []
        while True:
            for answered, answer in self._answers():
                if answered != sequence:
                    continue
                if answer.kind == _DONE:
                    return found
                if answer.kind == _ERROR:
                    raise NetlinkError(*_outcome(answer), 0)
                found.append(answer)

    def _send(self, batch: Sequence[Message], acknowledged: range, tolerate: frozenset[int] = frozenset()) -> None:
        first = self._sequence + 1
        self._sequence += len(batch)
        data = b""
        for index, message in enumerate(batch):
            data += _packed(message, _REQUEST | (_ACK if index in acknowledged else 0), first + index)
        self._socket.send(data)
        outcomes: dict[int, tuple[int, str]] = {}
        # An answer to a message that asked for none refuses the whole batch. No other answer follows it.
        while len(outcomes) < len(acknowledged) and outcomes.keys() <= set(acknowledged):
            for sequence, answer in self._answers():
                if answer.kind == _ERROR and 0 <= sequence - first < len(batch):
                    outcomes[sequence - first] = _outcome(answer)
        for index, (code, hint) in sorted(outcomes.items()):
            if code and code not in tolerate:
                raise NetlinkError(code, hint, index - acknowledged.start)

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
    """The error number (0 for success) and the kernel's message, if there is one."""
    (code,) = struct.unpack_from("=i", answer.body)
    hint = ""
    if answer.flags & _WITH_ATTRIBUTES:
        echoed = 4 + _HEADER.size
        if not answer.flags & _CAPPED:
            (length,) = struct.unpack_from("=I", answer.body, 4)
            echoed = 4 + length
        hint = attributes(answer.body[echoed:]).get(_ERROR_MESSAGE, b"").rstrip(b"\0").decode(errors="replace")
    return -code, hint
