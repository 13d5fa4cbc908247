"""Replay: equal requests are found in their order, and a miss shows where it differs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.domain.model_calls.record import ReplayMiss
from seatrial.domain.model_calls.replay import RECORD_FILE, Replay
from seatrial.errors import InvalidInput
from seatrial.gateway.recording import Recording
from seatrial.gateway.replay import CallReplay, RecordedAnswer
from seatrial.gateway.upstream import UpstreamFault
from seatrial.gateway.wire import DIGEST_RULES, digest_of, read_object
from tests.properties import trying

PATH = "/v1/chat/completions"
Said = Sequence[str]


def body(*said: str, **more: Any) -> bytes:
    messages = [{"role": "assistant" if index % 2 else "user", "content": text} for index, text in enumerate(said)]
    return json.dumps({"model": "m", "messages": messages, **more}).encode()


def record(folder: Path, *calls: tuple[bytes, str], path: str = PATH, secrets: Sequence[str] = ()) -> Path:
    """A record of requests and answers."""
    recording = Recording(folder, secrets)
    for asked, answered in calls:
        call = recording.call(path, digest_of(read_object(asked)), asked.decode())
        call.whole(200, (("content-type", "application/json"),), answered.encode())
        call.end(None, over_budget=False, broken=False, given_up=False)
    recording.close()
    return folder / RECORD_FILE


@asynccontextmanager
async def replaying(
    path: Path, miss: ReplayMiss = ReplayMiss.ERROR, secrets: Sequence[str] = ()
) -> AsyncIterator[CallReplay]:
    replay = await CallReplay.open(Replay(trial=12, miss=miss), path, secrets)
    yield replay
    replay.close()


def ask(replay: CallReplay, asked: bytes, path: str = PATH) -> str | None:
    found = replay.take(path, digest_of(read_object(asked)))
    return None if found is None else found.accepted(streams=False).body.decode()


async def missed(replay: CallReplay, asked: bytes, path: str = PATH) -> str | None:
    assert ask(replay, asked, path) is None
    read = read_object(asked)
    return await replay.miss(path, digest_of(read), read)


async def test_equal_requests_get_their_answers_in_order(tmp_path: Path) -> None:
    hello, other = body("hello"), body("other")
    path = record(tmp_path, (hello, "1"), (other, "2"), (hello, "3"))
    async with replaying(path) as replay:
        assert [ask(replay, asked) for asked in (hello, hello, other)] == ["1", "3", "2"]
        words = await missed(replay, hello)
        assert words is not None and "answers it 2 times, and it was asked once more" in words
        assert (replay.told.hits, replay.told.misses, replay.told.trial) == (3, 1, 12)


async def test_what_says_when_and_where_does_not_matter(tmp_path: Path) -> None:
    path = record(tmp_path, (body("root@task-abc123:/app# date\nMon Nov 16 16:07:55 UTC 2026"), "yes"))
    async with replaying(path) as replay:
        assert ask(replay, body("root@task-xyz789:/app# date\nTue Dec  1 06:07:55 UTC 2026")) == "yes"


async def test_the_path_matters(tmp_path: Path) -> None:
    path = record(tmp_path, (body("hello"), "yes"), path="/v1/models/one:generateContent")
    async with replaying(path) as replay:
        words = await missed(replay, body("hello"), "/v1/models/two:generateContent")
        assert words is not None and "No recorded call that is left is one of /v1/models/two:generateContent" in words


async def test_a_miss_shows_the_first_difference_to_the_nearest_request(tmp_path: Path) -> None:
    far, near = body("List the files", "ls"), body("Write a poem", "ok", "about the sea")
    path = record(tmp_path, (far, "1"), (near, "2"))
    async with replaying(path) as replay:
        words = await missed(replay, body("Write a poem", "ok", "about the wind"))
        assert words is not None
        assert words.endswith(
            'First difference to its call 2, at messages[2].content: recorded "about the sea", now "about the wind".'
        )
        assert replay.failure == words == replay.told.first_miss


async def test_after_a_miss_nothing_is_answered(tmp_path: Path) -> None:
    """The agent went another way. Answers to later requests would hide that."""
    path = record(tmp_path, (body("a"), "1"), (body("b"), "2"))
    async with replaying(path) as replay:
        first = await missed(replay, body("c"))
        assert await missed(replay, body("b")) == first
        assert replay.told.misses == 1


async def test_with_live_misses_the_rest_goes_on(tmp_path: Path) -> None:
    path = record(tmp_path, (body("a"), "1"), (body("b"), "2"))
    async with replaying(path, ReplayMiss.LIVE) as replay:
        assert await missed(replay, body("c")) is None
        assert ask(replay, body("b")) == "2"
        told = replay.told
        assert (told.hits, told.misses, replay.failure) == (1, 1, None) and "messages[0].content" in told.first_miss


async def test_long_values_are_shortened_around_the_difference(tmp_path: Path) -> None:
    start = "word " * 2000
    path = record(tmp_path, (body(f"{start}left {start}"), "1"))
    async with replaying(path) as replay:
        words = await missed(replay, body(f"{start}right {start}"))
    assert words is not None and len(words) < 700 and "word left word" in words and "word right word" in words


async def test_secrets_are_in_no_difference(tmp_path: Path) -> None:
    secret = "sk-canary-123456"
    path = record(tmp_path, (body(f"key {secret} a"), "1"), secrets=[secret])
    async with replaying(path, secrets=[secret]) as replay:
        words = await missed(replay, body(f"key {secret} b"))
    assert words is not None and secret not in words and "[REDACTED]" in words


@pytest.mark.parametrize(
    ("recorded", "asked", "place"),
    [
        ({}, {"temperature": 1}, "temperature: recorded nothing, now 1"),
        ({"tools": [{"name": "a"}]}, {"tools": [{"name": "b"}]}, 'tools[0].name: recorded "a", now "b"'),
        ({"stop": ["x"]}, {"stop": ["x", "y"]}, 'stop[1]: recorded nothing, now "y"'),
        ({"n": 1}, {"n": True}, "n: recorded 1, now true"),
        ({"model": "one"}, {"model": "two"}, 'model: recorded "one", now "two"'),
    ],
)
async def test_differences_are_told_by_their_place(
    tmp_path: Path, recorded: dict[str, Any], asked: dict[str, Any], place: str
) -> None:
    async with replaying(record(tmp_path, (body("a", **recorded), "1"))) as replay:
        words = await missed(replay, body("a", **asked))
    assert words is not None and place in words


async def test_an_answer_that_was_not_heard_to_its_end_is_none(tmp_path: Path) -> None:
    recording = Recording(tmp_path, [])
    digest = digest_of(read_object(body("a")))
    cut = recording.call(PATH, digest, body("a").decode())
    cut.head(200, ())
    cut.piece(b"half")
    whole = recording.call(PATH, digest, body("a").decode())
    whole.whole(200, (), b"whole")
    whole.end(None, over_budget=False, broken=False, given_up=False)
    recording.close()
    async with replaying(tmp_path / RECORD_FILE) as replay:
        assert ask(replay, body("a")) == "whole"


async def test_a_stream_has_the_pieces_it_had(tmp_path: Path) -> None:
    recording = Recording(tmp_path, [])
    call = recording.call(PATH, "d", "{}")
    call.head(200, (("content-type", "text/event-stream"),))
    for piece in (b"data: 1\n\n", b"data: 2\n\n", b"\xff"):
        call.piece(piece)
    call.end("it broke", over_budget=True, broken=True, given_up=True)
    recording.close()
    async with replaying(tmp_path / RECORD_FILE) as replay:
        found = replay.take(PATH, "d")
        assert isinstance(found, RecordedAnswer)
        assert (found.error, found.over_budget, found.broken, found.given_up) == ("it broke", True, True, True)
        accepted = found.accepted(streams=True)
        assert accepted.body == b"data: 1\n\n" and accepted.fields == (("content-type", "text/event-stream"),)
        pieces = []
        assert accepted.rest is not None
        with pytest.raises(UpstreamFault):
            async for piece in accepted.rest:
                pieces.append(piece)  # noqa: PERF401 - those before the fault count
        assert pieces == [b"data: 2\n\n", b"\xff"]


async def test_records_with_other_rules_get_new_digests(tmp_path: Path) -> None:
    path = record(tmp_path, (body("a"), "yes"))
    first, rest = path.read_bytes().split(b"\n", 1)
    assert json.loads(first) == {"digests": DIGEST_RULES}
    path.write_bytes(b'{"digests": 1}\n' + rest.replace(b'"digest":"', b'"digest":"old'))
    async with replaying(path) as replay:
        assert ask(replay, body("a")) == "yes"


async def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"[]\n{}\nnull\n\xff\n" + b'{"a":' * 5000 + b"\n")
    with pytest.raises(InvalidInput):
        await CallReplay.open(Replay(trial=1), path)


async def test_a_torn_and_strange_record_answers_what_it_can(tmp_path: Path) -> None:
    path = record(tmp_path, (body("a"), "yes"))
    strange = [b'{"n":1,"headers":3,"status":"x"}', b'{"n":7,"end":{}}', b'{"n":[],"request":1}', b'{"n":2,"piece"']
    path.write_bytes(path.read_bytes() + b"\n".join(strange))
    async with replaying(path) as replay:
        assert ask(replay, body("a")) == "yes"


@trying(50)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=12), st.randoms(use_true_random=False))
async def test_any_order_of_requests_gets_every_answer_once(tmp_path: Path, asked: list[str], chance: Any) -> None:
    """Agents with calls at the same time ask in another order each time."""
    (tmp_path / RECORD_FILE).unlink(missing_ok=True)
    path = record(tmp_path, *((body(word), f"{word}{index}") for index, word in enumerate(asked)))
    again = list(asked)
    chance.shuffle(again)
    async with replaying(path) as replay:
        got = [ask(replay, body(word)) or "" for word in again]
    assert sorted(got) == sorted(f"{word}{index}" for index, word in enumerate(asked))
    for word in "abc":
        mine = [int(each[1:]) for each in got if each[0] == word]
        assert mine == sorted(mine)
