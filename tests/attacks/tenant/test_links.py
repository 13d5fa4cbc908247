"""Whoever has a read-only link to one job or one trial tries to see more, to change something, or to keep it."""

from __future__ import annotations

import io
import json
import logging
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi.routing import APIRoute

from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.link import fresh_link_secret
from seatrial.domain.result import Result, StoredFile
from seatrial.domain.task import Task, TaskRef
from seatrial.domain.token import Role, fingerprint
from seatrial.domain.trial import Outcome
from seatrial.engine.trials.trial_files import try_prefix
from tests.api_in_process import Api, api_open, bearer
from tests.command_line import SAMPLES

CANARY = "only-for-the-team"
OF_A_JOB = ("", "/report", "/grid", "/trials", "/results", "/trials.csv")
OF_A_TRIAL = ("", "/tests", "/files", "/logs", "/files/agent/a.txt", "/logs/agent/a.txt")


@dataclass(frozen=True)
class Place:
    """A service that asks for tokens, with two jobs of two trials each. The links show the first of each."""

    api: Api
    owner: dict[str, str]
    owner_id: int
    job: int
    other: int
    trial: int
    sibling: int
    stranger: int
    """A trial of the other job."""
    digest: str
    of_job: str
    of_trial: str

    async def get(self, path: str, secret: str, **more: Any) -> httpx.Response:
        return await self.api.client.get(path, headers=bearer(secret), **more)

    async def made(self, **wanted: Any) -> dict[str, Any]:
        answer = await self.api.client.post("/api/v1/links", json=wanted, headers=self.owner)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    home = tmp_path_factory.mktemp("links")
    async with api_open(home, _env_file=None, auth="token", tb2_dir=SAMPLES) as api:
        there = api.service.installation
        [task] = await there.library.add(SAMPLES / "answer-file")
        [second] = await there.library.add(SAMPLES / "mend-a-script")
        owner = await api.token(Role.USER, "owner")
        jobs, trials = [], []
        for wanted in (task, second):
            spec = JobSpec(tasks=(_ref(wanted),), agents=(AgentSpec(name="nop"),), attempts=2)
            job = await there.store.jobs.create(spec, list(plan(spec)), there.clock())
            for trial in await there.store.trials.claim("w", timedelta(minutes=1), 2, there.clock(), job_id=job.id):
                await there.blobs.put_bytes(f"{try_prefix(trial.id, 1)}/agent/a.txt", b"what it did")
                result = Result(outcome=Outcome.FAILED, rewards={"reward": 0.0}, files=(_FILE,))
                await there.store.trials.finish(trial.id, 1, result, there.clock())
                trials.append(trial.id)
            jobs.append(job.id)
        trials.sort()
        token = next(token for token in await there.store.tokens.all() if token.name == "owner")
        found = Place(api, bearer(owner), token.id, *jobs, trials[0], trials[1], trials[2], task.digest, "", "")
        of_job, of_trial = await found.made(job=jobs[0]), await found.made(trial=trials[0])
        await api.client.post(f"/api/v1/trials/{trials[0]}/notes", json={"text": CANARY}, headers=found.owner)
        await api.client.put(f"/api/v1/trials/{trials[0]}/tags/{CANARY}", headers=found.owner)
        yield Place(**{**vars(found), "of_job": of_job["secret"], "of_trial": of_trial["secret"]})


def _ref(task: Task) -> TaskRef:
    return TaskRef(name=task.name, digest=task.digest)


_FILE = StoredFile(path="agent/a.txt", size=11, media_type="text/plain")


async def test_a_link_shows_its_job_and_its_trials(place: Place) -> None:
    paths = [f"/api/v1/jobs/{place.job}{rest}" for rest in OF_A_JOB]
    paths += [f"/api/v1/trials/{trial}{rest}" for trial in (place.trial, place.sibling) for rest in OF_A_TRIAL]
    for path in (*paths, f"/api/v1/tasks/{place.digest}", "/api/v1/shared"):
        answer = await place.get(path, place.of_job)
        assert answer.status_code == 200, (path, answer.text)
        assert CANARY not in answer.text, path


async def test_a_link_shows_its_trial(place: Place) -> None:
    for path in (*(f"/api/v1/trials/{place.trial}{rest}" for rest in OF_A_TRIAL), f"/api/v1/tasks/{place.digest}"):
        answer = await place.get(path, place.of_trial)
        assert answer.status_code == 200, (path, answer.text)
        assert CANARY not in answer.text, path
    opened = (await place.get("/api/v1/shared", place.of_trial)).json()
    assert (opened["job_id"], opened["trial_id"]) == (place.job, place.trial)


async def test_every_other_route_is_closed(place: Place) -> None:
    """All routes of the service, filled with what the link shows: what is not on the list above is refused, whatever
    the method."""
    given = {"job_id": place.job, "trial_id": place.trial, "digest": place.digest, "name": "agent/a.txt"}
    allowed = {f"/api/v1/jobs/{{job_id}}{rest}" for rest in OF_A_JOB}
    allowed |= {f"/api/v1/trials/{{trial_id}}{rest}" for rest in ("", "/tests", "/files", "/logs")}
    allowed |= {"/api/v1/trials/{trial_id}/files/{path:path}", "/api/v1/trials/{trial_id}/logs/{name:path}"}
    allowed |= {"/api/v1/trials/{trial_id}/trajectory", "/api/v1/trials/{trial_id}/recording"}
    allowed |= {"/api/v1/tasks/{digest}", "/api/v1/shared"}
    tried = 0
    for route in place.api.app.router.routes:
        if not isinstance(route, APIRoute):
            continue
        names = route.param_convertors
        path = route.path_format.format(**{name: given.get(name, 1) for name in names})
        for method in {*(route.methods or ()), "POST", "PUT", "PATCH", "DELETE"}:
            if method == "GET" and route.path in allowed:
                continue
            answer = await place.api.client.request(method, path, headers=bearer(place.of_job))
            assert answer.status_code == 403, (method, path, answer.status_code)
            tried += 1
    assert tried > 200


@pytest.mark.parametrize("link", ["of_job", "of_trial"])
async def test_other_jobs_and_trials_are_closed(place: Place, link: str) -> None:
    secret = getattr(place, link)
    paths = [f"/api/v1/jobs/{place.other}{rest}" for rest in OF_A_JOB]
    paths += [f"/api/v1/trials/{place.stranger}{rest}" for rest in OF_A_TRIAL]
    paths += ["/api/v1/jobs", "/api/v1/trials", "/api/v1/jobs/999999", "/api/v1/trials/999999", "/api/v1/events"]
    paths += [f"/api/v1/tasks/sha256:{'0' * 64}", "/api/v1/tasks", "/metrics", "/docs", "/api/tasks", "/api/v1/links"]
    if link == "of_trial":
        paths += [f"/api/v1/jobs/{place.job}{rest}" for rest in OF_A_JOB]
        paths += [f"/api/v1/trials/{place.sibling}{rest}" for rest in OF_A_TRIAL]
    answers = {path: (await place.get(path, secret)).status_code for path in paths}
    assert set(answers.values()) == {403}, answers


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/jobs/{job}/%2e%2e/{other}",
        "/api/v1/jobs/{job}%2f%2e%2e%2f{other}",
        "//api/v1/jobs/{other}",
        "/api/v1//jobs/{other}",
        "/api/v1/jobs/0{other}",
        "/api/v1/jobs/+{other}",
        "/api/v1/jobs/{job},{other}",
        "/api/v1/jobs/{job}/trials/%2e%2e/%2e%2e/{other}/trials",
        "/api/v1/jobs/{job}%0a",
        "/api/v1/jobs/{job}/",
        "/api/v1/jobs/{job}.json",
        "/API/V1/jobs/{other}",
        "/api/v1/trials/{trial}/files/%2e%2e/%2e%2e/{stranger}",
        "/api/v1/trials/{trial}/%2e%2e/{stranger}",
        "/api/v1/trials/{trial}/diverges-from/{stranger}",
        "/api/v1/trials/{trial}/triage",
        "/api/v1/trials/{trial}/neighbours",
        "/api/v1/jobs/{job}/triage",
        "/api/v1/jobs/{job}/events",
        "/api/v1/jobs/{job}/search?q=what",
        "/api/v1/compare?baseline={job}&other={other}",
        "/api/v1/jobs/٣",
    ],
)
async def test_spellings_of_a_path_lead_nowhere(place: Place, path: str) -> None:
    there = path.format(job=place.job, other=place.other, trial=place.trial, stranger=place.stranger)
    answer = await place.get(there, place.of_job)
    assert answer.status_code in (403, 404), answer.text
    assert "what it did" not in answer.text and '"items"' not in answer.text


@pytest.mark.parametrize("query", ["tag=only-for-the-team", "%74ag=x", "reviewed=false", "noted=true", "label=a"])
async def test_notes_and_tags_cannot_be_guessed_by_filters(place: Place, query: str) -> None:
    answer = await place.get(f"/api/v1/jobs/{place.job}/trials?outcome=failed&{query}", place.of_job)
    assert answer.status_code == 403


async def test_other_filters_work(place: Place) -> None:
    answer = await place.get(f"/api/v1/jobs/{place.job}/trials?outcome=failed", place.of_job)
    assert len(answer.json()["items"]) == 2


async def test_a_link_is_no_token_and_opens_no_session(place: Place) -> None:
    client, secret = place.api.client, place.of_job
    path = f"/api/v1/jobs/{place.job}"
    as_others = [
        await client.get(path, auth=("st", secret)),
        await client.get(path, auth=(secret, "")),
        await client.get(path, headers={"Cookie": f"seatrial_session={secret}"}),
        await client.get(path, params={"token": secret}),
        await client.post("/api/v1/session", json={"token": secret}),
    ]
    assert {answer.status_code for answer in as_others} == {401}
    assert not any(answer.cookies for answer in as_others)


async def test_a_link_shows_as_little_where_no_token_is_asked_for(tmp_path_factory: pytest.TempPathFactory) -> None:
    """On loopback everybody may do everything; who shows a link is held to it all the same."""
    async with api_open(tmp_path_factory.mktemp("loopback"), _env_file=None, tb2_dir=SAMPLES) as api:
        there = api.service.installation
        [task] = await there.library.add(SAMPLES / "answer-file")
        spec = JobSpec(tasks=(_ref(task),), agents=(AgentSpec(name="nop"),))
        ids = [(await there.store.jobs.create(spec, list(plan(spec)), there.clock())).id for _ in range(2)]
        secret = (await api.client.post("/api/v1/links", json={"job": ids[0]})).json()["secret"]
        codes = [(await api.client.get(f"/api/v1/jobs/{job}", headers=bearer(secret))).status_code for job in ids]
        assert codes == [200, 403]
        assert (await api.client.delete("/api/v1/links/1", headers=bearer(secret))).status_code == 403
        assert (await api.client.get(f"/api/v1/jobs/{ids[1]}")).status_code == 200


@pytest.mark.parametrize("how", ["revoked", "expired", "token revoked", "unknown", "cut", "longer", "the fingerprint"])
async def test_a_link_that_ended_shows_nothing(place: Place, how: str) -> None:
    api, there = place.api, place.api.service.installation
    path = f"/api/v1/jobs/{place.job}"
    if how == "token revoked":
        leaver = await api.token(Role.USER, "leaver")
        made = (await api.client.post("/api/v1/links", json={"job": place.job}, headers=bearer(leaver))).json()
    else:
        made = await place.made(job=place.job, expires="1m")
    secret, ended = made["secret"], made["secret"]
    assert (await place.get(path, secret)).status_code == 200
    match how:
        case "revoked":
            await api.client.delete(f"/api/v1/links/{made['id']}", headers=place.owner)
        case "expired":
            link = await there.store.links.find(fingerprint(secret))
            assert link is not None and not link.is_valid(there.clock() + timedelta(minutes=1))
            past = {
                "expires_at": there.clock() - timedelta(seconds=1),
                "fingerprint": fingerprint(fresh := "st_link_x"),
            }
            values = {name: value for name, value in link.model_dump().items() if name not in _OWN}
            await there.store.links.save(type(link).__bases__[0](**{**values, **past}), there.clock())
            ended = fresh
        case "token revoked":
            token = next(each for each in await there.store.tokens.all() if each.name == "leaver")
            await there.store.tokens.revoke(token.id, there.clock())
        case "unknown":
            ended = fresh_link_secret()
        case "cut":
            ended = secret[:-1]
        case "longer":
            ended = secret + "A"
        case "the fingerprint":
            ended = "st_link_" + fingerprint(secret)
    answer = await place.get(path, ended)
    assert answer.status_code == 401 and "expired or was revoked" in answer.text


_OWN = {"id", "created_at", "revoked_at"}


@pytest.mark.parametrize("expires", ["never", "91d", "10000w", "0d", "-1d", "", "7 d"])
async def test_a_link_without_an_end_is_refused(place: Place, expires: str) -> None:
    answer = await place.api.client.post(
        "/api/v1/links", json={"job": place.job, "expires": expires}, headers=place.owner
    )
    assert answer.status_code == 422


async def test_only_who_may_change_something_makes_links(place: Place) -> None:
    viewer = bearer(await place.api.token(Role.VIEWER, "viewer"))
    refused = await place.api.client.post("/api/v1/links", json={"job": place.job}, headers=viewer)
    assert refused.status_code == 403
    for wanted in ({}, {"job": place.job, "trial": place.trial}):
        assert (await place.api.client.post("/api/v1/links", json=wanted, headers=place.owner)).status_code == 422
    for wanted in ({"job": 999999}, {"trial": 999999}):
        assert (await place.api.client.post("/api/v1/links", json=wanted, headers=place.owner)).status_code == 404


async def test_the_secret_is_told_once_and_kept_nowhere(place: Place) -> None:
    """Neither in lists, nor in the database, nor in the log of requests."""
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    set_up = logging.getLogger()
    set_up.addHandler(handler)
    level = set_up.level
    set_up.setLevel(logging.DEBUG)
    try:
        made = await place.made(job=place.job)
        assert made["path"] == f"/shared#{made['secret']}", "a fragment is sent to no server"
        await place.get(f"/api/v1/jobs/{place.job}", made["secret"])
        await place.get("/api/v1/jobs", made["secret"])
    finally:
        set_up.removeHandler(handler)
        set_up.setLevel(level)
    assert made["secret"] not in lines.getvalue()
    listed = await place.api.client.get("/api/v1/links", headers=place.owner)
    assert made["secret"] not in listed.text and fingerprint(made["secret"]) not in listed.text
    assert next(link for link in listed.json()["items"] if link["id"] == made["id"])["valid"]
    database = place.api.service.installation.settings.home / "seatrial.db"
    with sqlite3.connect(database) as store:
        everything = json.dumps([list(row) for row in store.execute("SELECT * FROM links")])
    assert made["secret"] not in everything and fingerprint(made["secret"]) in everything


async def test_guessing_is_slowed_down(place: Place) -> None:
    codes = {(await place.get("/api/v1/shared", fresh_link_secret())).status_code for _ in range(30)}
    assert codes == {401, 429}
    assert (await place.get("/api/v1/shared", place.of_job)).status_code == 200, "a valid link is not"
