"""Whoever can reach the port sends heads without end, before anybody asks who it is."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from seatrial.api.gates.head_limits import HEADS_OF_ONE
from tests.command_line import CommandLine
from tests.running_service import RunningService, service_up
from tests.waiting import until

PIECE = b"x-a: " + b"a" * 65_530 + b"\r\n"
LARGE = 40 << 20


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    place = tmp_path_factory.mktemp("heads")
    with CommandLine(place / "home", place / "cache", place) as cli, service_up(cli, "--workers", "0") as running:
        running.get("/health")
        yield running


def memory(service: RunningService, field: str = "VmHWM") -> int:
    """Kilobytes; the most that the process ever had."""
    found = re.search(rf"{field}:\s+(\d+)", Path(f"/proc/{service.api}/status").read_text())
    assert found is not None
    return int(found[1])


def answer_to(service: RunningService, start: bytes, piece: bytes, size: int = LARGE) -> bytes:
    """Sends until the server has had enough, then reads what it said."""
    with closing(service.connect()) as connection:
        with suppress(ConnectionError):
            connection.sendall(start)
            for _ in range(size // len(piece) if piece else 0):
                connection.sendall(piece)
        answer = b""
        with suppress(ConnectionError):
            while received := connection.recv(65_536):
                answer += received
    return answer


ENDLESS = {
    "headers": (b"GET /api/v1/jobs HTTP/1.1\r\nhost: x\r\n", PIECE),
    "small headers": (b"GET /api/v1/jobs HTTP/1.1\r\nhost: x\r\n", b"x-a: 1\r\n" * 8000),
    "one header": (b"GET /api/v1/jobs HTTP/1.1\r\nhost: x\r\nx-a: ", b"a" * 65_536),
    "a header's name": (b"GET /api/v1/jobs HTTP/1.1\r\nhost: x\r\nx-", b"a" * 65_536),
    "request line": (b"GET /", b"a" * 65_536),
    "query": (b"GET /api/v1/jobs?a=", b"a" * 65_536),
    "folded header": (b"GET / HTTP/1.1\r\nhost: x\r\nx-a: a\r\n", b" " + b"a" * 65_530 + b"\r\n"),
    "empty lines": (b"", b"\r\n" * 32_768),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_endless_head_is_refused_and_not_kept(service: RunningService, kind: str) -> None:
    before = memory(service)
    start, piece = ENDLESS[kind]
    for _ in range(4):
        answer = answer_to(service, start, piece)
        assert answer[:12] in (b"HTTP/1.1 431", b"HTTP/1.1 400"), answer[:200]
    assert memory(service) < before * 1.25
    assert service.get("/health")[0] == 200


def test_it_is_said_how_much_would_be_taken(service: RunningService) -> None:
    answer = answer_to(service, *ENDLESS["one header"])
    assert answer.startswith(b"HTTP/1.1 431 ") and b"65536 bytes and 100 headers" in answer
    assert b"connection: close" in answer


@pytest.mark.parametrize(("count", "status"), [(90, 200), (101, 431), (5000, 431)])
def test_headers_are_counted(service: RunningService, count: int, status: int) -> None:
    """Also where the whole head comes at once."""
    lines = b"".join(b"x-%d: a\r\n" % number for number in range(count))
    head = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n" + lines + b"\r\n"
    assert answer_to(service, head, b"", 0).startswith(b"HTTP/1.1 %d" % status)


@pytest.mark.parametrize(("size", "status"), [(60_000, 200), (70_000, 431), (200_000, 431)])
def test_a_head_that_comes_at_once_is_measured(service: RunningService, size: int, status: int) -> None:
    head = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\nx-a: " + b"a" * size + b"\r\n\r\n"
    assert answer_to(service, head, b"", 0).startswith(b"HTTP/1.1 %d" % status)


CHUNKED = b"POST /api/v1/jobs HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "rest", [b"0\r\n", b"2\r\n{}\r\n0\r\n", b"2;a="], ids=["trailers", "after a body", "extension"]
)
def test_what_is_no_body_is_bounded_inside_of_one(service: RunningService, rest: bytes) -> None:
    before = memory(service)
    for _ in range(4):
        answer_to(service, CHUNKED + rest, PIECE if rest.endswith(b"\n") else b"a" * 65_536)
    assert memory(service) < before * 1.25
    assert service.get("/health")[0] == 200


def test_a_trailer_changes_nothing_about_the_request(service: RunningService) -> None:
    """It comes when all is decided; a host that is not ours would be refused in a header."""
    body = b'{"tasks":[]}'
    start = CHUNKED.replace(b"chunked\r\n", b"chunked\r\ncontent-type: application/json\r\nconnection: close\r\n")
    chunk = b"%x\r\n%s\r\n0\r\n" % (len(body), body)
    plain = answer_to(service, start + chunk + b"\r\n", b"", 0)
    trailed = answer_to(service, start + chunk + b"x-late: 1\r\nhost: evil.example\r\n\r\n", b"", 0)
    assert plain[:12] == trailed[:12] == b"HTTP/1.1 422"


def test_headers_of_a_form_are_bounded(service: RunningService) -> None:
    before = memory(service)
    start = (
        b"POST /api/tasks HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: multipart/form-data; boundary=b\r\n"
        b"content-length: %d\r\n\r\n--b\r\nx: " % LARGE
    )
    answer = answer_to(service, start, b"a" * 65_536)
    assert answer.startswith(b"HTTP/1.1 4"), answer[:100]
    assert memory(service) < before * 1.25


def test_connections_that_ask_nothing_are_bounded(service: RunningService) -> None:
    """One more than may wait is cut at once; those who ask are answered when some have gone."""
    waiting: list[socket.socket] = []
    try:
        for _ in range(HEADS_OF_ONE):
            connection = service.connect()
            connection.sendall(b"GET /health HTTP/1.1\r\n")
            waiting.append(connection)
        with closing(service.connect()) as extra, suppress(ConnectionError):
            assert extra.recv(1) == b""
    finally:
        for connection in waiting:
            connection.close()
    until(lambda: service.get("/health")[0] == 200, "the service has noticed that they are gone")
