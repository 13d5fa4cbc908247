"""The line that each request leaves: what is in it, and what is not."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from httpx import ASGITransport, AsyncClient

from seatrial.api.gates.request_log import RequestLog
from tests.integration.operations.conftest import Api


class Numbers:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, int]] = []
        self.listeners = 0
        self.most_listeners = 0

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        assert seconds >= 0
        self.requests.append((method, route, status))

    def listening(self, change: int) -> None:
        self.listeners += change
        self.most_listeners = max(self.most_listeners, self.listeners)


def lines(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "seatrial.access"]


async def test_a_request_leaves_one_line_without_its_query(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    answer = await api.get("/health?openrouter_api_key=sk-canary-1234567890123456&other=sk-second-canary")
    [line] = lines(caplog)
    about = line.__dict__["about"]
    assert (about["method"], about["route"], about["status"], about["caller"]) == ("GET", "/health", 200, "anonymous")
    assert about["ms"] >= 0
    assert answer.headers["x-request-id"]
    assert "canary" not in str([record.__dict__ for record in caplog.records if record.name.startswith("seatrial")])


async def test_probes_are_quiet_as_long_as_they_are_answered(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert (await api.get("/health")).status_code == 200
    assert (await api.get("/ready")).status_code == 503
    assert lines(caplog) == []
    assert (await api.get("/health", Host="elsewhere.example")).status_code == 421
    assert len(lines(caplog)) == 1


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("abc-123", True), ("a" * 64, True), ("a" * 65, False), ("two words", False), ("x\tY", False), ("", False)],
)
async def test_an_id_that_came_with_the_request_goes_along_if_it_is_one(api: Api, sent: str, kept: bool) -> None:
    told = (await api.get("/health", X_Request_Id=sent)).headers["x-request-id"]
    assert (told == sent) is kept
    assert told


async def test_streams_are_counted_while_they_last_and_do_not_count_as_slow() -> None:
    app, numbers = FastAPI(), Numbers()

    async def tell() -> AsyncIterator[bytes]:
        assert numbers.listeners == 1
        yield b": hello\n\n"

    @app.get("/stream/{name}")
    async def stream(name: str) -> StreamingResponse:
        return StreamingResponse(tell(), media_type="text/event-stream")

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("on purpose")

    app.add_middleware(RequestLog, numbers=numbers)
    transport = ASGITransport(app, raise_app_exceptions=False)
    async with AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        assert (await client.get("/stream/one")).text == ": hello\n\n"
        assert (numbers.listeners, numbers.most_listeners, numbers.requests) == (0, 1, [])
        assert (await client.get("/broken")).status_code == 500
        assert numbers.requests == [("GET", "/broken", 500)]
