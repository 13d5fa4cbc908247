"""A connection that never completes the head of a request is cut; one that takes its time within the limit is not."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from tests.command_line import CommandLine
from tests.running_service import RunningService, service_up
from tests.waiting import LIMIT_SEC

LIMIT = 4.0


@pytest.fixture
def service(cli: CommandLine) -> Iterator[RunningService]:
    with service_up(cli, "--workers", "0", SEATRIAL_SLOW_CLIENT_SEC=str(LIMIT)) as running:
        yield running


def test_unfinished_heads_are_cut_and_finished_ones_answered(service: RunningService) -> None:
    whole = f"GET /health HTTP/1.1\r\nHost: {':'.join(map(str, service.address))}\r\n\r\n".encode()
    with service.connect() as silent, service.connect() as partial, answered(service, whole) as again:
        partial.sendall(whole[:20])
        again.sendall(whole[:20])
        with answered(service, whole[:20], whole[20:]) as good:
            for cut in (silent, partial, again):
                assert is_closed(cut)
            good.sendall(whole)
            assert is_answered(good), "an idle connection is kept"


def test_bytes_now_and_then_buy_no_time(service: RunningService) -> None:
    began = time.monotonic()
    with service.connect() as dripping:
        dripping.sendall(b"GET /health HTTP/1.1\r\n")
        with pytest.raises(OSError):
            while time.monotonic() - began < LIMIT_SEC:
                dripping.sendall(b"x-a: b\r\n")
                time.sleep(0.2)
    assert time.monotonic() - began > LIMIT / 2


def answered(service: RunningService, begin: bytes, *rest: bytes) -> socket.socket:
    """A connection whose request came in these parts. Where this test itself was too late for the limit, once more."""
    while True:
        good, began = service.connect(), time.monotonic()
        try:
            good.sendall(begin)
            for part in rest:
                time.sleep(LIMIT / 8)
                good.sendall(part)
            assert is_answered(good)
            return good
        except (OSError, AssertionError):
            good.close()
            if time.monotonic() - began < LIMIT:
                raise


def is_answered(connection: socket.socket) -> bool:
    """Reads one whole answer."""
    answer = b""
    while not answer.endswith(b"}"):
        piece = connection.recv(65536)
        assert piece, answer
        answer += piece
    return b" 200 OK" in answer


def is_closed(connection: socket.socket) -> bool:
    """Within a minute, by the service: without its limit it would keep the connection."""
    connection.settimeout(LIMIT_SEC)
    return connection.recv(65536) == b""
