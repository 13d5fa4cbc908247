"""The part of the DNS wire format that a forwarder needs: it reads questions, and reads and writes answers.

Messages come from sandboxes and from the network, so every length is checked. An unreadable message is ``Malformed``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

A = 1
AAAA = 28
_IN = 1
_HEADER = struct.Struct("!HHHHHH")
_RESPONSE = 0x8000
_OPCODE = 0x7800
_AUTHORITATIVE_OFF = 0x0100
_RECURSION_AVAILABLE = 0x0080
TRUNCATED = 0x0200

NO_ERROR, FORMAT_ERROR, SERVER_FAILURE, NO_SUCH_NAME, NOT_IMPLEMENTED, REFUSED = range(6)
_LONGEST_NAME = 255
_MOST_JUMPS = 64


class Malformed(ValueError):
    """Not a readable DNS message."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question. ``raw`` is the question section as it came. An answer repeats it."""

    number: int
    flags: int
    name: str
    kind: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class Address:
    """An address in an answer. It is valid for ``ttl`` seconds."""

    value: IPv4Address
    ttl: int


def read_question(message: bytes) -> Question:
    """The one question of a query."""
    if len(message) < _HEADER.size:
        raise Malformed("too short")
    number, flags, questions, _, _, _ = _HEADER.unpack_from(message)
    if flags & _RESPONSE or flags & _OPCODE or questions != 1:
        raise Malformed("not a plain query with one question")
    return _question(message, number, flags)


def read_answer(message: bytes, question: Question) -> list[Address]:
    """The IPv4 addresses in an answer to that question. ``Malformed`` also when it answers another one."""
    if len(message) < _HEADER.size:
        raise Malformed("too short")
    number, flags, questions, answers, _, _ = _HEADER.unpack_from(message)
    if not flags & _RESPONSE or questions != 1:
        raise Malformed("not an answer")
    answered = _question(message, number, flags)
    if (answered.name, answered.kind) != (question.name, question.kind):
        raise Malformed("the answer to another question")
    offset = _HEADER.size + len(answered.raw)
    found = []
    for _ in range(answers):
        _, offset = _name(message, offset)
        if offset + 10 > len(message):
            raise Malformed("a record is cut off")
        kind, group, ttl, length = struct.unpack_from("!HHIH", message, offset)
        offset += 10
        if offset + length > len(message):
            raise Malformed("a record is cut off")
        if kind == A and group == _IN and length == 4:
            found.append(Address(IPv4Address(message[offset : offset + 4]), ttl))
        offset += length
    return found


def result(message: bytes) -> int:
    """An answer's result code."""
    flags: int = _HEADER.unpack_from(message)[1]
    return flags & 0x000F


def answer(question: Question, code: int = NO_ERROR, addresses: Sequence[Address] = (), flags: int = 0) -> bytes:
    """An answer that Seatrial makes itself."""
    bits = _RESPONSE | (question.flags & _AUTHORITATIVE_OFF) | _RECURSION_AVAILABLE | flags | code
    records = b"".join(
        b"\xc0\x0c" + struct.pack("!HHIH", A, _IN, address.ttl, 4) + address.value.packed for address in addresses
    )
    return _HEADER.pack(question.number, bits, 1, len(addresses), 0, 0) + question.raw + records


def renumbered(message: bytes, number: int) -> bytes:
    return struct.pack("!H", number) + message[2:]


def _question(message: bytes, number: int, flags: int) -> Question:
    name, offset = _name(message, _HEADER.size)
    if offset + 4 > len(message):
        raise Malformed("the question is cut off")
    kind, _ = struct.unpack_from("!HH", message, offset)
    return Question(number, flags, name, kind, message[_HEADER.size : offset + 4])


def _name(message: bytes, offset: int) -> tuple[str, int]:
    """A name in lower case, and the offset after it."""
    labels: list[str] = []
    length = jumps = 0
    end = -1
    while True:
        if offset >= len(message):
            raise Malformed("a name is cut off")
        size = message[offset]
        if size >= 0xC0:
            if offset + 2 > len(message) or jumps >= _MOST_JUMPS:
                raise Malformed("a name has a pointer that cannot be followed")
            end = offset + 2 if end < 0 else end
            offset = struct.unpack_from("!H", message, offset)[0] & 0x3FFF
            jumps += 1
            continue
        if size > 63 or (length := length + size + 1) > _LONGEST_NAME:
            raise Malformed("a name is too long")
        offset += 1
        if size == 0:
            return ".".join(labels), offset if end < 0 else end
        if offset + size > len(message):
            raise Malformed("a name is cut off")
        # A dot inside a label must differ from the end of a label, or "a.example" could be spelled in two ways.
        labels.append(message[offset : offset + size].decode("latin-1").lower().replace(".", "\\."))
        offset += size
