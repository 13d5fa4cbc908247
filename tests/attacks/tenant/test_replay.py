"""Somebody without the right to read a trial tries to read it by a replay: its answers, or what a miss tells of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import pytest
import pytest_asyncio

from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.model_calls.replay import RECORD_FILE
from seatrial.domain.result import Result, StoredFile
from seatrial.domain.task import TaskRef
from seatrial.domain.token import Role
from seatrial.domain.trial import Outcome
from seatrial.engine.trials.trial_files import try_prefix
from seatrial.ports.store import TrialFilter
from tests.api_in_process import Api, api_open, bearer
from tests.command_line import SAMPLES

AGENT = {"name": "terminus-2", "model": "openai/m"}


@dataclass(frozen=True)
class Place:
    """A service that asks for tokens, with a recorded trial, one without a record, and one that waits."""

    api: Api
    job: int
    recorded: int
    plain: int
    waiting: int

    async def replay(self, who: dict[str, str], **replay: Any) -> httpx.Response:
        body = {"tasks": ["answer-file"], "agents": [AGENT], "replay": replay}
        return await self.api.client.post("/api/v1/jobs", json=body, headers=who)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    home = tmp_path_factory.mktemp("replay")
    async with api_open(home, _env_file=None, auth="token", tb2_dir=SAMPLES) as api:
        there = api.service.installation
        [task] = await there.library.add(SAMPLES / "answer-file")
        ref = TaskRef(name=task.name, digest=task.digest)
        spec = JobSpec(tasks=(ref,), agents=(AgentSpec(**AGENT),), attempts=3)
        job = await there.store.jobs.create(spec, list(plan(spec)), there.clock())
        ids: list[int] = []
        for files in ((StoredFile(path=RECORD_FILE, size=3),), ()):
            [trial] = await there.store.trials.claim("w", timedelta(minutes=1), 1, there.clock(), job_id=job.id)
            await there.blobs.put_bytes(f"{try_prefix(trial.id, 1)}/{RECORD_FILE}", b"{}\n")
            result = Result(outcome=Outcome.PASSED, rewards={"reward": 1.0}, files=files)
            await there.store.trials.finish(trial.id, trial.try_number, result, there.clock())
            ids.append(trial.id)
        rows = there.store.trials.each(TrialFilter(job_id=job.id))
        [waiting] = [row.trial.id async for row in rows if row.trial.id not in ids]
        yield Place(api, job.id, ids[0], ids[1], waiting)


async def test_who_may_run_jobs_may_replay_what_they_may_read(place: Place) -> None:
    """The benign twin. A token that runs jobs reads every trial of its installation, so it may replay each."""
    user = bearer(await place.api.token(Role.USER, "user"))
    answer = await place.replay(user, trial=place.recorded)
    assert answer.status_code == 201, answer.text
    spec = (await place.api.client.get(f"/api/v1/jobs/{answer.json()['id']}", headers=user)).json()["spec"]
    assert spec["replay"] == {"trial": place.recorded, "miss": "error"}


async def test_without_a_token_nobody_replays(place: Place) -> None:
    assert (await place.replay({}, trial=place.recorded)).status_code == 401


async def test_who_only_reads_does_not_replay(place: Place) -> None:
    viewer = bearer(await place.api.token(Role.VIEWER, "viewer"))
    assert (await place.replay(viewer, trial=place.recorded)).status_code == 403


@pytest.mark.parametrize("of_trial", [False, True], ids=["job", "trial"])
async def test_a_read_only_link_replays_nothing_not_even_what_it_shows(place: Place, of_trial: bool) -> None:
    user = bearer(await place.api.token(Role.USER, f"author {of_trial}"))
    wanted = {"trial": place.recorded} if of_trial else {"job": place.job}
    made = await place.api.client.post("/api/v1/links", json=wanted, headers=user)
    assert made.status_code == 201, made.text
    link = bearer(made.json()["secret"])
    shown = await place.api.client.get(f"/api/v1/trials/{place.recorded}", headers=link)
    assert shown.status_code == 200
    for trial in (place.recorded, place.plain):
        assert (await place.replay(link, trial=trial)).status_code in (401, 403)


@pytest.mark.parametrize("wanted", [0, -1, 2**63, "1/../2", "1 OR 1=1", 1.5, None, [1], {"id": 1}])
async def test_a_trial_is_a_number(place: Place, wanted: Any) -> None:
    user = bearer(await place.api.token(Role.USER, f"user {wanted}"))
    assert (await place.replay(user, trial=wanted)).status_code == 422


async def test_fields_that_are_not_there_are_refused(place: Place) -> None:
    user = bearer(await place.api.token(Role.USER, "user of files"))
    for more in ({"path": "/etc/passwd"}, {"key": "trials/1/1/x"}, {"miss": "always"}):
        assert (await place.replay(user, trial=place.recorded, **more)).status_code == 422


async def test_what_has_no_record_is_refused_with_the_way_to_one(place: Place) -> None:
    user = bearer(await place.api.token(Role.USER, "user of others"))
    for trial, words in ((place.plain, "--record full"), (place.waiting, "has not ended yet"), (10**6, "no trial")):
        answer = await place.replay(user, trial=trial)
        assert answer.status_code == 422 and words in answer.text, answer.text


async def test_a_live_replay_needs_a_key_like_any_job(place: Place) -> None:
    """Otherwise a replay would be a way around the rules for keys."""
    user = bearer(await place.api.token(Role.USER, "user of keys"))
    answer = await place.replay(user, trial=place.recorded, miss="live")
    assert answer.status_code == 400 and "needs a key" in answer.text
