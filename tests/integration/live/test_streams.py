"""What happens in a worker process reaches clients of the API process: soon, in order, once, and to the end."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from datetime import datetime

import pytest

from seatrial.ports.store import TrialFilter
from tests.event_source import Got, client, everything, listen
from tests.integration.live.conftest import Live
from tests.live_processes import api_process, submit, worker_process

PROMISED_SEC = 1.0


def delay(got: Got) -> float:
    return got.at - datetime.fromisoformat(got.data["at"]).timestamp()


async def test_a_job_is_told_from_its_beginning_to_its_end_within_a_second(live: Live) -> None:
    job = await submit(live.installation, 3)
    listening = asyncio.create_task(everything(live.http, f"/jobs/{job.id}/events"))
    await asyncio.sleep(1.5)
    with worker_process(live.home, seconds=1.5):
        async with asyncio.timeout(60):
            got = await listening
    assert [one.kind for one in got[-2:]] == ["job.ended", "end"]
    kinds = [one.kind for one in got]
    assert (kinds[0], kinds.count("trial.claimed"), kinds.count("trial.ended")) == ("job.created", 3, 3)
    assert [one.data["seq"] for one in got[:-1]] == [
        event.seq for event in await live.installation.store.events.read(job_id=job.id)
    ]
    told = [one for one in got[1:-1] if one.kind in ("trial.claimed", "trial.ended", "job.ended", "trial.phase")]
    assert max(map(delay, told)) < PROMISED_SEC
    assert await everything(live.http, f"/jobs/{job.id}/events") != []  # all of it again, for who comes later
    assert (await everything(live.http, f"/jobs/{job.id}/events", got[-1].id))[0].kind == "end"


async def test_a_trial_is_told_with_what_it_writes(live: Live) -> None:
    job = await submit(live.installation, 1)
    (row,) = [row async for row in live.installation.store.trials.each(TrialFilter(job_id=job.id))]
    with worker_process(live.home, seconds=3.0):
        async with asyncio.timeout(60):
            got = await everything(live.http, f"/trials/{row.trial.id}/events")
    pieces = [one for one in got if one.kind == "trial.output"]
    text = "".join(one.data["text"] for one in pieces)
    lines = [line.split() for line in text.splitlines()]
    assert [int(number) for number, _ in lines] == list(range(60))
    assert {one.data["stream"] for one in pieces} == {"agent"}
    assert len(pieces) >= 5
    for one in pieces:
        first = float(one.data["text"].split()[1])
        assert one.at - first < PROMISED_SEC
    assert got[-1].kind == "end"
    assert [one.kind for one in got if one.kind != "trial.output"][-2] == "trial.ended"


async def test_who_comes_back_gets_exactly_what_was_missed(live: Live) -> None:
    job = await submit(live.installation, 2)
    (row, _) = [row async for row in live.installation.store.trials.each(TrialFilter(job_id=job.id))]
    path = f"/trials/{row.trial.id}/events"
    with worker_process(live.home, seconds=3.0):
        async with asyncio.timeout(60):
            whole = asyncio.create_task(everything(live.http, path))
            parts: list[Got] = []
            while not parts or parts[-1].kind != "end":
                wanted = len(parts) + 4
                async for got in listen(live.http, path, parts[-1].id if parts else ""):
                    parts.append(got)
                    if len(parts) == wanted:
                        break
                await asyncio.sleep(0.35)
            assert _sorted(parts) == _sorted(await whole)
    assert len(parts) > 12
    assert sum(got.kind == "trial.output" for got in parts) > 5


def _sorted(story: list[Got]) -> tuple[list[tuple[str, int | None]], ...]:
    """Events and output each have their order; how they lie between each other is not promised."""
    output = [got.key for got in story if got.kind == "trial.output"]
    return [got.key for got in story if got.kind != "trial.output"], output


async def test_kinds_are_chosen_and_output_of_a_job_is_sent_if_asked_for(live: Live) -> None:
    job = await submit(live.installation, 2)
    with worker_process(live.home, seconds=1.5):
        async with asyncio.timeout(60):
            some, output, plain = await asyncio.gather(
                everything(live.http, f"/jobs/{job.id}/events", kinds="trial.claimed, trial.ended"),
                everything(live.http, f"/jobs/{job.id}/events", kinds="trial.output"),
                everything(live.http, f"/jobs/{job.id}/events"),
            )
    assert {got.kind for got in some} == {"trial.claimed", "trial.ended", "end"}
    assert {got.kind for got in output} == {"trial.output", "end"}
    assert len({got.data["trial_id"] for got in output[:-1]}) == 2
    assert "trial.output" not in {got.kind for got in plain}


async def test_everything_is_told_from_now_on(live: Live) -> None:
    await submit(live.installation, 1)
    last = await live.installation.store.events.last()
    got: list[Got] = []

    async def follow() -> None:
        async for one in listen(live.http, "/events"):
            got.append(one)
            if len(got) == 2:
                return

    following = asyncio.create_task(follow())
    await asyncio.sleep(1.0)
    await submit(live.installation, 1)
    await submit(live.installation, 1)
    async with asyncio.timeout(60):
        await following
    assert [one.kind for one in got] == ["job.created", "job.created"]
    assert got[0].data["seq"] > last


@pytest.mark.parametrize(
    ("path", "status", "field"),
    [
        ("/jobs/77/events", 404, ""),
        ("/trials/77/events", 404, ""),
        ("/jobs/1/events?kinds=nonsense", 422, "kinds"),
        ("/jobs/1/events?after=nonsense", 422, "after"),
        ("/events?kinds=trial.output", 422, "kinds"),
        ("/jobs/0/events", 422, "job_id"),
    ],
)
async def test_what_cannot_be_told_is_refused(live: Live, path: str, status: int, field: str) -> None:
    await submit(live.installation, 1)
    answer = await live.http.get(f"/api/v1{path}")
    assert (answer.status_code, answer.json()["error"]["field"]) == (status, field), answer.text


async def test_the_server_ends_streams_when_it_stops(live: Live) -> None:
    job = await submit(live.installation, 1)
    with api_process(live.home) as (address, pid):
        async with client(address) as http:
            stream = listen(http, f"/jobs/{job.id}/events")
            assert (await anext(stream)).kind == "job.created"
            os.kill(pid, signal.SIGTERM)
            started = time.monotonic()
            assert [got.kind async for got in stream] == []  # without an end: a client comes back
            assert time.monotonic() - started < 5
