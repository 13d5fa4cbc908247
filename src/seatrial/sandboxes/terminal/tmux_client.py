"""One command for a tmux server, sent as tmux's own client sends it, without a process.

``oci.terminal_line`` connects the socket. The messages are those of tmux 3.2 to 3.7, whose protocol has been version 8
since 2013. To the server this is a client like any other that is not attached: it comes, asks and goes.

The server is a process of the sandbox, and may be a program of the agent. So nothing that it says is trusted: messages
are bounded, output is kept as that of any command, descriptors are neither sent nor taken, and nothing is opened for
it. Whatever does not belong to an answer raises ``NotUnderstood``.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from seatrial.sandboxes.output import CapturedStream, Ended, Listener

VERSION_QUESTION = ("display-message", "-p", "#{version}")
"""A command that changes nothing. The answer tells whether the server is one that this module knows."""
_KNOWN_VERSION = re.compile(r"3\.[2-7][a-z]?\n")
_SUBCOMMANDS = frozenset({"capture-pane", "has-session", "send-keys", "set-option"})
_LONGEST_COMMAND = 16_000
"""tmux takes no more than 16,384 bytes with the header. What is near it is left to tmux, which words the error."""

_PROTOCOL = 8
_HEADER = struct.Struct("=IIII")
_INT = struct.Struct("=i")
_TWO_INTS = struct.Struct("=ii")
_FLAGS, _TERM, _TTYNAME, _ENVIRON, _DONE, _CLIENTPID, _CWD, _FEATURES, _LONGFLAGS = (
    *(100, 101, 102, 105, 106, 107),
    *(108, 109, 111),
)
_COMMAND, _EXIT, _EXITING, _NEW_FLAGS = 200, 203, 205, 218
_WRITE_OPEN, _WRITE, _WRITE_READY = 303, 304, 305
_UTF8 = 0x10000
_LONGEST_MESSAGE = 16_384
_MOST_OTHERS = 16
"""Messages of an answer that are not output."""
_CHUNK = 1 << 16
_PACE_SEC = 0.002
_NAMES = {1: "stdout", 2: "stderr"}


class NotUnderstood(Exception):
    """The server is gone, or is not one that this module knows."""


@dataclass(frozen=True, slots=True)
class Client:
    """What tmux's client says about itself."""

    environment: Mapping[str, str]
    cwd: str
    shows_utf8: bool

    @classmethod
    def of(cls, environment: Mapping[str, str], cwd: str, *, always_utf8: bool) -> Client:
        """With the flag that tmux itself derives from the environment, unless it was started with ``-u``."""
        locale = next((environment[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(name)), "")
        return cls(environment, cwd, always_utf8 or re.search("utf-?8", locale, re.IGNORECASE) is not None)


def plain_words(command: str) -> list[str] | None:
    """The arguments of a tmux command for which a shell has nothing to do; ``None`` for anything else."""
    if not command.startswith("tmux ") or command.split(" ", 2)[1] not in _SUBCOMMANDS:
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if shlex.join(words) != command or any(word.endswith(";") for word in words):
        return None
    if len(command.encode(errors="replace")) > _LONGEST_COMMAND or not _is_utf8(command):
        return None
    return words[1:]


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def is_known_version(answer: Ended) -> bool:
    return answer.return_code == 0 and not answer.stderr and _KNOWN_VERSION.fullmatch(answer.stdout) is not None


async def ask(server: socket.socket, client: Client, words: Sequence[str], listener: Listener | None = None) -> Ended:
    """Runs one command. Borrows a connected socket that does not block."""
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_sendall(server, _request(client, words))
        answer = _Answer(listener)
        buffer = bytearray()
        while answer.return_code is None:
            if not (data := await loop.sock_recv(server, _CHUNK)):
                raise NotUnderstood("the server has closed the connection")
            buffer += data
            for kind, body in _messages(buffer):
                if reply := await answer.take(kind, body):
                    with suppress(
                        *([OSError] if answer.return_code is not None else [])
                    ):  # it may be gone after its answer
                        await loop.sock_sendall(server, reply)
            await asyncio.sleep(_PACE_SEC if answer.overflows else 0)
    except OSError as error:
        raise NotUnderstood(str(error)) from error
    return answer.ended


class _Answer:
    """What the server has said so far."""

    def __init__(self, listener: Listener | None) -> None:
        self._streams = (CapturedStream("stdout", listener), CapturedStream("stderr", listener))
        self._open: set[int] = set()
        self._others = 0
        self.return_code: int | None = None

    @property
    def overflows(self) -> bool:
        return any(stream.kept.overflows for stream in self._streams)

    @property
    def ended(self) -> Ended:
        stdout, stderr = (stream.kept.text for stream in self._streams)
        return Ended(self.return_code or 0, stdout, stderr)

    async def take(self, kind: int, body: bytes) -> bytes:
        """Returns a reply, if there has to be one."""
        if kind == _WRITE and len(body) >= _INT.size and (number := _INT.unpack_from(body)[0]) in self._open:
            await self._streams[number - 1].take(body[_INT.size :])
            return b""
        self._others += 1
        if self._others > _MOST_OTHERS:
            raise NotUnderstood("the server says too much")
        if kind == _WRITE_OPEN and len(body) == 3 * _INT.size:
            return self._opened(*_TWO_INTS.unpack_from(body))
        if kind == _EXIT and len(body) in (0, _INT.size):
            self.return_code = _INT.unpack(body)[0] & 0xFF if body else 0
            return _message(_EXITING)
        if kind == _NEW_FLAGS:
            return b""
        raise NotUnderstood(f"the server sent a message of the kind {kind}")

    def _opened(self, stream: int, file: int) -> bytes:
        if stream not in _NAMES or file != stream or stream in self._open:
            raise NotUnderstood("the server wants to write elsewhere")
        self._open.add(stream)
        return _message(_WRITE_READY, _TWO_INTS.pack(stream, 0))


def _request(client: Client, words: Sequence[str]) -> bytes:
    flags = _UTF8 if client.shows_utf8 else 0
    variables = (f"{name}={value}" for name, value in client.environment.items())
    command = b"".join(_text(word) for word in words)
    parts = [
        _message(_FLAGS, _INT.pack(flags)),
        _message(_LONGFLAGS, struct.pack("=Q", flags)),
        _message(_TERM, _text(client.environment.get("TERM", ""))),
        _message(_FEATURES, _INT.pack(0)),
        _message(_TTYNAME, _text("")),
        _message(_CWD, _text(client.cwd)),
        _message(_CLIENTPID, _INT.pack(0)),
        *(_message(_ENVIRON, _text(variable)) for variable in variables if len(variable.encode()) < _LONGEST_COMMAND),
        _message(_DONE),
        _message(_COMMAND, _INT.pack(len(words)) + command),
    ]
    return b"".join(parts)


def _message(kind: int, body: bytes = b"") -> bytes:
    return _HEADER.pack(kind, _HEADER.size + len(body), _PROTOCOL, 0xFFFFFFFF) + body


def _text(value: str) -> bytes:
    return value.encode() + b"\0"


def _messages(buffer: bytearray) -> Iterator[tuple[int, bytes]]:
    """Takes whole messages from a buffer."""
    while len(buffer) >= _HEADER.size:
        kind, length, _, _ = _HEADER.unpack_from(buffer)
        if not _HEADER.size <= length <= _LONGEST_MESSAGE:
            raise NotUnderstood("the server sent a message of an impossible length")
        if len(buffer) < length:
            return
        body = bytes(buffer[_HEADER.size : length])
        del buffer[:length]
        yield kind, body
