"""Size and pace of what comes in, counted while it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from seatrial.api.gates.limits import JSON_LIMIT, Limits, UploadCount
from seatrial.settings import Settings
from tests.waiting import LIMIT_SEC, eventually

UPLOAD = "multipart/form-data; boundary=x"


class Time:
    """A clock that moves when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Client:
    """Sends pieces of a body and takes down what it is answered. Each piece takes ``pause`` seconds of ``time``."""

    def __init__(self, pieces: Iterable[bytes], pause: float = 0.0, *, ends: bool = True, **headers: str) -> None:
        self._pieces = list(pieces)
        self._pause = pause
        self._ends = ends
        self.time = Time()
        self.may_send = asyncio.Event()
        self.may_send.set()
        self.is_asked = False
        self.taken = 0
        self.sent: list[Message] = []
        raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        self.scope: Scope = {
            "type": "http",
            "method": "POST",
            "path": "/api/v1/tasks",
            "headers": raw or [(b"transfer-encoding", b"chunked")],
            "client": ("127.0.0.1", 1),
        }

    async def receive(self) -> Message:
        self.is_asked = True
        await self.may_send.wait()
        self.time.now += self._pause
        if self.taken == len(self._pieces):
            await asyncio.Event().wait()
        self.taken += 1
        last = self._ends and self.taken == len(self._pieces)
        return {"type": "http.request", "body": self._pieces[self.taken - 1], "more_body": not last}

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def is_closed(self) -> bool:
        return (b"connection", b"close") in self.sent[0]["headers"]


class Reader:
    """Reads the whole body and says how long it was; answers as the real application does."""

    def __init__(self) -> None:
        self.size = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status = 200
        try:
            async for piece in Request(scope, receive).stream():
                self.size += len(piece)
        except HTTPException as fault:
            status = fault.status_code
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


async def ask(client: Client, uploads: UploadCount | None = None, slow_sec: float = LIMIT_SEC) -> Reader:
    reader = Reader()
    settings = Settings(upload_limit_mb=3, slow_client_sec=slow_sec)
    gate = Limits(reader, settings, uploads, clock=client.time, linger_sec=0.05)
    await gate(client.scope, client.receive, client.send)
    return reader


async def test_a_body_within_the_limit_passes_as_it_is() -> None:
    client = Client([b"a" * JSON_LIMIT])
    assert (await ask(client)).size == JSON_LIMIT
    assert client.status == 200 and not client.is_closed
    upload = Client([b"a" * (1 << 20)] * 3, content_type=UPLOAD, transfer_encoding="chunked")
    assert (await ask(upload)).size == 3 << 20
    assert upload.status == 200


@pytest.mark.parametrize(
    "client",
    [
        Client([b"a" * JSON_LIMIT, b"b"]),
        Client([b"a" * (1 << 20)] * 5, content_type=UPLOAD, transfer_encoding="chunked"),
        Client([b"a" * JSON_LIMIT, b"b"], content_length="1"),
    ],
    ids=["json", "upload", "lying"],
)
async def test_one_byte_more_is_refused_while_it_streams(client: Client) -> None:
    reader = await ask(client)
    assert client.status == 413 and client.is_closed
    assert reader.size <= 3 << 20


async def test_a_declared_length_is_refused_before_anything_is_read() -> None:
    client = Client([], content_length=str(JSON_LIMIT + 1), content_type="application/json")
    reader = await ask(client)
    assert (client.status, client.taken, reader.size) == (413, 0, 0)
    assert client.is_closed


async def test_a_client_that_stops_in_the_middle_is_cut() -> None:
    client = Client([b"abc"], ends=False)
    await ask(client, slow_sec=0.1)
    assert client.status == 408 and client.is_closed


async def test_a_trickle_is_cut_and_a_steady_stream_is_not() -> None:
    trickle = Client([b"x"] * 1000, pause=1)
    assert (await ask(trickle)).size == LIMIT_SEC
    assert trickle.status == 408
    steady = Client([b"x" * 1000] * 100, pause=1)
    assert (await ask(steady)).size == 100_000
    assert steady.status == 200


async def test_time_that_we_take_ourselves_is_not_held_against_the_client() -> None:
    client = Client([b"x"] * 4)

    async def slow_reader(scope: Scope, receive: Receive, send: Send) -> None:
        async for _ in Request(scope, receive).stream():
            client.time.now += 2 * LIMIT_SEC
        await send({"type": "http.response.start", "status": 200, "headers": []})

    gate = Limits(slow_reader, Settings(slow_client_sec=LIMIT_SEC), clock=client.time)
    await gate(client.scope, client.receive, client.send)
    assert client.status == 200


async def test_only_so_many_uploads_at_once_and_each_gives_its_place_back() -> None:
    uploads = UploadCount(of_one=2, of_all=3)
    slow = [Client([b"x"] * 10, content_type=UPLOAD, content_length="10") for _ in range(5)]
    for client in slow[:3]:
        client.may_send.clear()
    for client in slow[2:]:
        client.scope["client"] = ("127.0.0.2", 1)
    slow[4].scope["client"] = ("127.0.0.1", 2)
    working = [asyncio.create_task(ask(client, uploads)) for client in slow[:2]]
    await eventually(lambda: all(client.is_asked for client in slow[:2]), "two uploads under way")
    await ask(slow[4], uploads)
    assert slow[4].status == 429
    working.append(asyncio.create_task(ask(slow[2], uploads)))
    await eventually(lambda: slow[2].is_asked, "a third upload under way")
    await ask(slow[3], uploads)
    assert slow[3].status == 503
    for client in slow[:3]:
        client.may_send.set()
    await asyncio.gather(*working)
    assert [client.status for client in slow[:3]] == [200, 200, 200]
    again = Client([b"x"], content_type=UPLOAD, content_length="1")
    await ask(again, uploads)
    assert again.status == 200


async def test_an_unread_body_is_swallowed_for_a_moment_so_that_its_client_reads_the_answer() -> None:
    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b"no"})

    client = Client([b"x"] * 3, content_length="3")
    await Limits(refuse, Settings())(client.scope, client.receive, client.send)
    assert client.taken == 3 and client.is_closed
    assert [message.get("more_body", False) for message in client.sent[1:]] == [True, False]
    polite = Client([b"x"] * 3, content_length="3", expect="100-continue")
    await Limits(refuse, Settings())(polite.scope, polite.receive, polite.send)
    assert polite.taken == 0 and polite.status == 401


async def test_requests_without_a_body_are_left_alone() -> None:
    client = Client([b""], accept="*/*")
    await ask(client)
    assert client.status == 200 and not client.is_closed
