"""Which commands need no shell, and what is made of a server's messages."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from seatrial.sandboxes.terminal.tmux_client import Client, NotUnderstood, ask, is_known_version, plain_words

CLIENT = Client.of({"PATH": "/bin", "TERM": "xterm"}, "/app", always_utf8=True)
WRITE_OPEN, WRITE, EXIT = 303, 304, 203


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("tmux has-session -t main", ["has-session", "-t", "main"]),
        ("tmux send-keys -t main -- 'a b' '' Enter", ["send-keys", "-t", "main", "--", "a b", "", "Enter"]),
        ("tmux send-keys -t main -- 'it'\"'\"'s'", ["send-keys", "-t", "main", "--", "it's"]),
        ("tmux  has-session", None),
        ("tmux has-session ", None),
        ("tmux has-session -t $X", None),
        ("tmux has-session -t main; reboot", None),
        ("tmux has-session -t main && true", None),
        ("tmux has-session > /app/x", None),
        ('tmux has-session -t "main"', None),
        ("tmux send-keys -t main 'x;'", None),
        ("tmux send-keys -t main '\ud800'", None),
        ("tmux kill-server", None),
        ("tmux -S /app/x has-session", None),
        ("tmuxinator has-session", None),
        ("tmux has-session -t 'x", None),
        ("tmux ", None),
    ],
)
def test_plain_words(command: str, words: list[str] | None) -> None:
    assert plain_words(command) == words


@pytest.mark.parametrize(
    ("environment", "always", "expected"),
    [
        ({}, False, False),
        ({}, True, True),
        ({"LANG": "C.UTF-8"}, False, True),
        ({"LANG": "C.UTF-8", "LC_ALL": "C"}, False, False),
        ({"LC_CTYPE": "de_DE.utf8"}, False, True),
    ],
)
def test_the_flag_for_utf8_is_that_of_tmux(environment: dict[str, str], always: bool, expected: bool) -> None:
    assert Client.of(environment, "/", always_utf8=always).shows_utf8 is expected


def message(kind: int, body: bytes = b"") -> bytes:
    return struct.pack("=IIII", kind, 16 + len(body), 8, 0) + body


async def answered(*parts: bytes, closed: bool = False) -> tuple[int, str, str]:
    """What is made of an answer that comes in these parts."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        asking = asyncio.create_task(ask(ours, CLIENT, ["has-session"]))
        loop = asyncio.get_running_loop()
        assert b"has-session\0" in await loop.sock_recv(theirs, 1 << 16)
        for part in parts:
            await loop.sock_sendall(theirs, part)
            await asyncio.sleep(0)
        if closed:
            theirs.shutdown(socket.SHUT_WR)
        ended = await asking
    return ended.return_code, ended.stdout, ended.stderr


def opened(stream: int) -> bytes:
    return message(WRITE_OPEN, struct.pack("=iii", stream, stream, 0))


def wrote(stream: int, text: bytes) -> bytes:
    return message(WRITE, struct.pack("=i", stream) + text)


async def test_an_answer_in_pieces_of_one_byte() -> None:
    whole = opened(1) + wrote(1, "grü".encode()[:3]) + wrote(1, b"\xbc") + opened(2) + wrote(2, b"no\n")
    whole += message(EXIT, struct.pack("=i", 1))
    assert await answered(*(bytes([byte]) for byte in whole)) == (1, "grü", "no\n")


async def test_a_server_may_be_gone_right_after_its_answer() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)
        asking = asyncio.create_task(ask(ours, CLIENT, ["has-session"]))
        await asyncio.sleep(0)
        theirs.recv(1 << 16)
        theirs.sendall(message(EXIT, struct.pack("=i", 1)))
        theirs.close()
        assert (await asking).return_code == 1


async def test_an_exit_without_a_code_is_a_success() -> None:
    assert await answered(message(EXIT)) == (0, "", "")


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [b"x" * 100],
        [message(EXIT, struct.pack("=i", 1) + b"server exited\0")],
        [message(WRITE, b"")],
        [wrote(1, b"x")],
        [opened(1), opened(1)],
        [opened(3)],
        [message(WRITE_OPEN, struct.pack("=iii", 1, -1, 0) + b"/etc/passwd\0")],
        [struct.pack("=IIII", WRITE, 15, 8, 0)],
        [struct.pack("=IIII", WRITE, 16385, 8, 0)],
        [message(12)],
    ],
)
async def test_anything_else_is_not_understood(parts: list[bytes]) -> None:
    with pytest.raises(NotUnderstood):
        await answered(*parts, closed=True)


@pytest.mark.parametrize(
    ("told", "known"),
    [("3.2a\n", True), ("3.7c\n", True), ("3.1c\n", False), ("next-3.8\n", False), ("3.3a\nx\n", False), ("", False)],
)
async def test_versions(told: str, known: bool) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.sendall(opened(1) + wrote(1, told.encode()) + message(EXIT))
        assert is_known_version(await ask(ours, CLIENT, ["display-message"])) is known
