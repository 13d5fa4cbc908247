"""The client where a real service cannot be made to misbehave: odd bytes in streams, proxies, broken pipes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from seatrial import Client
from seatrial.client.destination import Destination
from seatrial.client.messages import MessageReader
from seatrial.client.transport import Resumption
from seatrial.domain.output import Output
from seatrial.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    InvalidTask,
    MissingKey,
    NotFound,
    SeatrialError,
    ServiceUnavailable,
    StorageFull,
    StoreUnavailable,
    Unauthenticated,
    Unsupported,
)
from seatrial.shapes.trials import Gap

_NOW = datetime(2026, 1, 2, tzinfo=UTC)
_PROBLEM = {"file": "task.toml", "message": "is not TOML", "fix": "mend it"}
_DEAD = "http://service.invalid"


def _client(answer: Callable[[httpx.Request], httpx.Response], **options: Any) -> Client:
    return Client(_DEAD, transport=httpx.MockTransport(answer), **options)


def _refusing(status: int, code: str, **more: Any) -> Client:
    error = {"code": code, "message": "So it is.", "fix": "Do so.", "field": "tasks", **more}
    return _client(lambda request: httpx.Response(status, json={"error": error}))


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "bad_request", InvalidInput),
        (400, "missing_key", MissingKey),
        (401, "unauthenticated", Unauthenticated),
        (403, "forbidden", Forbidden),
        (404, "not_found", NotFound),
        (409, "conflict", Conflict),
        (413, "too_large", InvalidInput),
        (422, "invalid_input", InvalidInput),
        (422, "unsupported", Unsupported),
        (429, "too_many", ServiceUnavailable),
        (500, "fault", SeatrialError),
        (503, "unavailable", StoreUnavailable),
        (507, "storage_full", StorageFull),
    ],
)
def test_each_refusal_is_an_error_of_ours(status: int, code: str, kind: type[SeatrialError]) -> None:
    with _refusing(status, code) as client, pytest.raises(kind) as raised:
        client.jobs.get(1)
    assert type(raised.value) is kind
    assert (raised.value.message, raised.value.fix) == ("So it is.", "Do so.")
    if isinstance(raised.value, InvalidInput):
        assert raised.value.field == "tasks"


def test_problems_of_a_task_come_along() -> None:
    with _refusing(422, "invalid_input", problems=[_PROBLEM]) as client, pytest.raises(InvalidTask) as raised:
        client.jobs.get(1)
    assert raised.value.problems[0].fix == "mend it"
    assert raised.value.message == "So it is."


@pytest.mark.parametrize(("status", "kind"), [(502, ServiceUnavailable), (404, NotFound), (500, SeatrialError)])
def test_answers_of_a_proxy_are_told_by_their_status(status: int, kind: type[SeatrialError]) -> None:
    with _client(lambda request: httpx.Response(status, text="<html>")) as client, pytest.raises(kind) as raised:
        client.jobs.get(1)
    assert str(status) in raised.value.message


def test_what_is_not_a_seatrial_service_is_said() -> None:
    with (
        _client(lambda request: httpx.Response(200, text="<html>")) as client,
        pytest.raises(SeatrialError, match="like a Seatrial service"),
    ):
        client.jobs.get(1)


@pytest.mark.parametrize(
    ("url", "token", "shown", "used"),
    [
        ("http://host:8000", "secret", "http://host:8000", "secret"),
        ("https://secret@host", "", "https://host", "secret"),
        ("https://any:secret@host/under", "", "https://host/under", "secret"),
        ("https://other@host", "secret", "https://host", "secret"),
        ("http://host", "", "http://host", ""),
    ],
)
def test_a_token_is_found_and_never_shown(url: str, token: str, shown: str, used: str) -> None:
    there = Destination.of(url, token)
    assert (str(there.url), there.token) == (shown, used)
    assert "secret" not in repr(there)


@pytest.mark.parametrize("url", ["ftp://host", "host:8000", "http://", "nonsense"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="address"):
        Destination.of(url, "")


def test_the_token_goes_in_a_header_and_keys_in_theirs() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"queued": 1})

    with Client(_DEAD, "secret", transport=httpx.MockTransport(answer)) as client:
        assert client.jobs.resume(1, keys={"A_API_KEY": "one", "B_API_KEY": "two"}) == 1
    [request] = seen
    assert request.headers["authorization"] == "Bearer secret"
    assert request.headers.get_list("x-provider-key") == ["A_API_KEY=one", "B_API_KEY=two"]
    assert "one" not in str(request.url) + request.content.decode()


def test_a_service_may_live_under_a_path(job_json: dict[str, Any]) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(200, json=job_json)

    with Client("https://secret@host/under/", transport=httpx.MockTransport(answer)) as client:
        assert client.jobs.get(7).id == 7
        assert client.url == "https://host/under/"
        client.trials.read(1, "agent/a b?c#d.txt")
    assert asked == [
        "https://host/under/api/v1/jobs/7",
        "https://host/under/api/v1/trials/1/files/agent/a%20b%3Fc%23d.txt",
    ]


def test_a_half_written_file_is_not_left_under_its_name(tmp_path: Path) -> None:
    class Broken(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b"half"
            raise httpx.ReadError("reset")

    answers = iter([httpx.Response(200, stream=Broken()), httpx.Response(200, content=b"whole")])
    with _client(lambda request: next(answers)) as client:
        assert client.trials.download(1, "agent/log.txt", tmp_path / "log.txt").read_bytes() == b"whole"
    assert [each.name for each in tmp_path.iterdir()] == ["log.txt"]


def _output(text: str) -> str:
    body = Output(trial_id=1, attempt=1, stream="agent", text=text, seq=1, at=_NOW).model_dump_json()
    return f"id: 3-1\nevent: trial.output\ndata: {body}\n\n"


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_messages_survive_any_cut_and_any_character(size: int) -> None:
    text = "a\u2028b\u2029c\x85d\x0b\x0c\x1c\r\nä"
    stream = (
        ": hello\nretry: 2000\nid: 3-0\n\n" + _output(text) + 'event: gap\nid: 3-1\ndata: {"trial_id": 1}\n\n'
    ).encode()
    reader = MessageReader()
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    first, second = [message for piece in pieces for message in reader.feed(piece)]
    assert isinstance(first.body, Output)
    assert (first.id, first.kind, first.body.text) == ("3-1", "trial.output", text)
    assert (second.kind, second.body) == ("gap", Gap(trial_id=1))
    assert not reader.ended
    assert list(reader.feed(b"event: end\nid: 9-1\ndata: {}\n\n")) == []
    assert (reader.ended, reader.last_id) == (True, "9-1")


def test_a_stream_is_taken_up_where_it_broke_and_a_torn_message_is_heard_once() -> None:
    whole = _output("first")
    broken = whole + _output("second").replace("3-1", "3-2")[:40]
    rest = _output("second").replace("3-1", "3-2") + "event: end\nid: 3-2\ndata: {}\n\n"
    asked: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers.get("last-event-id"))
        return httpx.Response(200, content=(broken if len(asked) == 1 else rest).encode())

    with _client(answer) as client:
        texts = [message.body.text for message in client.events.trial(1) if isinstance(message.body, Output)]
    assert (texts, asked) == (["first", "second"], [None, "3-1"])


def test_patience_counts_from_when_the_service_was_last_reached() -> None:
    now = 0.0
    resumption = Resumption(10, lambda: now)
    failure = httpx.ConnectError("refused")
    now = 9.0
    resumption.refused(failure, httpx.URL(_DEAD))
    resumption.reached()
    now = 18.0
    resumption.refused(failure, httpx.URL(_DEAD))
    assert [resumption.pause() for _ in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
    now = 19.0
    with pytest.raises(ServiceUnavailable, match="cannot be reached"):
        resumption.refused(failure, httpx.URL(_DEAD))


def test_waiting_falls_back_to_looking_where_streams_do_not_come_through(job_json: dict[str, Any]) -> None:
    looks = 0

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal looks
        if request.url.path.endswith("/events"):
            raise httpx.RemoteProtocolError("a proxy cut it")
        looks += 1
        ended = _NOW.isoformat() if looks == 3 else None
        return httpx.Response(200, content=json.dumps({**job_json, "ended_at": ended}))

    with _client(answer) as client:
        assert client.jobs.wait(7, timeout=600).ended_at == _NOW
    assert looks == 3


@pytest.fixture
def job_json() -> dict[str, Any]:
    counts = dict.fromkeys(("held", "queued", "running", "passed", "failed", "error", "cancelled"), 0)
    return {
        "id": 7,
        "name": "job-7",
        "pinned": False,
        "status": "running",
        "origin": "seatrial",
        "dataset": None,
        "created_at": _NOW.isoformat(),
        "started_at": None,
        "ended_at": None,
        "cancelled_at": None,
        "counts": {**counts, "total": 0},
        "totals": {"seconds": 0, "input_tokens": 0, "output_tokens": 0, "cost_usd": None},
        "agents": [],
        "tasks": 0,
        "attempts": 1,
        "sandbox": "auto",
        "labels": {},
        "added": None,
        "score": None,
        "scores": None,
        "progress": {},
        "spec": {"tasks": [], "agents": []},
    }
