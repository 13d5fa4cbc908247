"""Two ways into a running service for a load test: TBench Runner's contract, and Seatrial's own API.

A door belongs to one user: it has a token and connections of its own.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, Self

import aiohttp

from benchmarks.load_report import ENDED, RunSeen, TaskSeen
from seatrial.client import AgentRequest, AsyncClient, JobRequest
from seatrial.domain.trial import Outcome, TrialState
from seatrial.errors import SeatrialError
from seatrial.task_content.pack import pack

_REQUEST_SEC = 120.0
_TIMES = 6
"""A request is sent this often if the service is too busy or the connection breaks."""
_BUSY = (429, 502, 503, 504)


class Refused(Exception):
    """The service did not take a request; the text is its reason."""


@dataclass(frozen=True, slots=True)
class Work:
    """What each user asks for again and again."""

    task: Path
    """A folder with one task."""
    archive: bytes
    runs: int
    agent: str = "oracle"
    model: str = ""

    @classmethod
    def of(cls, task: Path, scratch: Path, runs: int, agent: str, model: str) -> Self:
        archive = scratch / "load-test.zip"
        pack(task, archive)
        return cls(task, archive.read_bytes(), runs, agent, model)


@dataclass(frozen=True, slots=True)
class Look:
    """How far a task is."""

    begun: int
    ended: int
    seconds: float
    """How long the answer took."""


class Door(Protocol):
    async def submit(self, name: str) -> int:
        """Uploads and starts. The answer is the task's number; raises ``Refused``."""
        ...

    def follow(self, task_id: int, every_sec: float) -> AsyncIterator[Look]:
        """Looks at the task again and again, for ever."""
        ...

    async def seen(self, name: str, task_id: int) -> TaskSeen:
        """The task in the end, with every run and every try of it as far as the service tells."""
        ...


class RunnerDoor:
    """As TBench Runner's page and scripts do it."""

    def __init__(self, url: str, token: str, work: Work, http: aiohttp.ClientSession) -> None:
        self._url = url.rstrip("/")
        self._work = work
        self._http = http
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def submit(self, name: str) -> int:
        work = self._work
        query = {"name": name, "agent": work.agent, "num_runs": str(work.runs)}
        query |= {"model": work.model} if work.model else {}
        once = {"Idempotency-Key": uuid.uuid4().hex}
        task = await self._ask("POST", "/api/tasks", query, once, archive=work.archive)
        started = await self._ask("POST", f"/api/tasks/{task['id']}/execute-async", taken_before=(400,))
        if started is not None and started["runs_queued"] != work.runs:
            raise Refused(f"{started['runs_queued']} of {work.runs} runs were queued.")
        return int(task["id"])

    async def follow(self, task_id: int, every_sec: float) -> AsyncIterator[Look]:
        while True:
            asked = time.perf_counter()
            runs = (await self._ask("GET", f"/api/tasks/{task_id}"))["runs"]
            took = time.perf_counter() - asked
            states = [_plain(run["status"]) for run in runs]
            yield Look(sum(state != "pending" for state in states), sum(state in ENDED for state in states), took)
            await asyncio.sleep(every_sec)

    async def seen(self, name: str, task_id: int) -> TaskSeen:
        runs = (await self._ask("GET", f"/api/tasks/{task_id}"))["runs"]
        return TaskSeen(name, self._work.runs, tuple([await self._run(run) for run in runs]))

    async def _run(self, run: dict[str, Any]) -> RunSeen:
        """Seatrial tells the tries of a run too; another server of this contract does not."""
        trial = await self._ask("GET", f"/api/v1/trials/{run['id']}", taken_before=(404,), first=True)
        tries = trial["attempts"] if trial is not None else [{"outcome": "passed"}]
        return RunSeen(
            number=run["run_number"],
            status=_plain(run["status"]),
            started_at=_time(run["started_at"]),
            ended_at=_time(run["completed_at"]),
            tries=len(tries),
            grades=sum(one["outcome"] in ("passed", "failed") for one in tries),
        )

    async def _ask(
        self,
        method: str,
        path: str,
        query: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        *,
        archive: bytes | None = None,
        taken_before: tuple[int, ...] = (),
        first: bool = False,
    ) -> Any:
        """``taken_before``: statuses that mean that an earlier request had done it; ``first``: or this one."""
        reason = ""
        for number in range(_TIMES):
            if number:
                await asyncio.sleep(0.2 * 2**number)
            form = _form(archive) if archive is not None else None
            sent = {**self._headers, **(headers or {})}
            try:
                async with self._http.request(
                    method, self._url + path, params=query, data=form, headers=sent
                ) as answer:
                    if answer.status in (200, 201):
                        return await answer.json()
                    if answer.status in taken_before and (number or first):
                        return None
                    reason = f"{answer.status} {(await answer.text())[:300]}"
                    if answer.status not in _BUSY:
                        break
            except (aiohttp.ClientError, TimeoutError) as error:
                reason = f"{type(error).__name__}: {error}"
        raise Refused(f"{method} {path}: {reason}")


class NativeDoor:
    """As a program does it that uses Seatrial's client."""

    def __init__(self, client: AsyncClient, work: Work, watch: bool) -> None:
        self._client = client
        self._work = work
        self._watch = watch

    async def submit(self, name: str) -> int:
        work = self._work
        try:
            [taken] = await self._client.tasks.upload(work.task)
            agent = AgentRequest(name=work.agent, model=work.model or None)
            wanted = JobRequest(name=name, tasks=(taken.tasks[0].digest,), agents=(agent,), attempts=work.runs)
            return (await self._client.jobs.create(wanted)).id
        except SeatrialError as error:
            raise Refused(str(error)) from error

    async def follow(self, task_id: int, every_sec: float) -> AsyncIterator[Look]:
        if self._watch:
            async for _ in self._client.events.job(task_id):
                yield await self._look(task_id)
        while True:
            yield await self._look(task_id)
            await asyncio.sleep(every_sec)

    async def _look(self, task_id: int) -> Look:
        asked = time.perf_counter()
        try:
            counts = (await self._client.jobs.get(task_id)).counts
        except SeatrialError as error:
            raise Refused(str(error)) from error
        ended = counts.passed + counts.failed + counts.error + counts.cancelled
        return Look(counts.total - counts.held - counts.queued, ended, time.perf_counter() - asked)

    async def seen(self, name: str, task_id: int) -> TaskSeen:
        runs = []
        async for listed in self._client.trials.list(job=task_id):
            trial = await self._client.trials.get(listed.id)
            outcome = trial.outcome.value if trial.outcome is not None else ""
            waits = trial.state in (TrialState.QUEUED, TrialState.HELD)
            runs.append(
                RunSeen(
                    number=trial.repeat,
                    status=_plain(outcome) if outcome else "pending" if waits else "running",
                    started_at=trial.started_at,
                    ended_at=trial.ended_at,
                    tries=len(trial.attempts),
                    grades=sum(one.outcome in (Outcome.PASSED, Outcome.FAILED) for one in trial.attempts),
                )
            )
        return TaskSeen(name, self._work.runs, tuple(runs))


def _plain(status: str) -> str:
    return {"timeout": "failed", "cancelled": "error"}.get(status, status)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _form(archive: bytes) -> aiohttp.FormData:
    form = aiohttp.FormData()
    form.add_field("file", archive, filename="load-test.zip", content_type="application/zip")
    return form


def session() -> aiohttp.ClientSession:
    """Connections of one user, as many as a browser opens to one host."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=6), timeout=aiohttp.ClientTimeout(total=_REQUEST_SEC)
    )
