"""A store with a hundred thousand ended trials in many jobs, written straight into its tables: running them would take
an hour, and what is measured is reading."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from benchmarks.store import RESULT
from seatrial.adapters.store_sql.database import database_at
from seatrial.adapters.store_sql.tables import jobs, tasks, trials, tries
from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.domain.trial import Cause, NewTrial, Outcome, TrialState

TASKS, ATTEMPTS = 20, 5
AGENTS = (AgentSpec(name="oracle"), AgentSpec(name="terminus-2", model="scripted/shell"))
TRIALS_OF_A_JOB = TASKS * ATTEMPTS * len(AGENTS)
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_OUTCOMES = (Outcome.PASSED, Outcome.FAILED, Outcome.PASSED, Outcome.ERROR, Outcome.PASSED)
_ROWS_AT_ONCE = 20


def a_task(number: int) -> Task:
    return Task(
        digest=f"sha256:{number:064x}",
        name=f"task-{number:05d}",
        format=TaskFormat.HARBOR,
        instruction="Do what has to be done.\n" * 20,
        category="benchmark",
    )


def a_spec(name: str) -> JobSpec:
    refs = tuple(TaskRef(name=a_task(number).name, digest=a_task(number).digest) for number in range(TASKS))
    return JobSpec(name=name, tasks=refs, agents=AGENTS, attempts=ATTEMPTS)


async def fill(url: str, trials_wanted: int) -> int:
    """An upgraded, empty store; says how many jobs it has now."""
    wanted = -(-trials_wanted // TRIALS_OF_A_JOB)
    database = database_at(url)
    await database.open()
    try:
        await database.write(_write_tasks)
        for first in range(0, wanted, _ROWS_AT_ONCE):
            numbers = range(first, min(first + _ROWS_AT_ONCE, wanted))
            await database.write(lambda connection, numbers=numbers: _write_jobs(connection, numbers))
        await database.write(_as_later)
    finally:
        await database.close()
    return wanted


async def multiply(url: str, trials_wanted: int) -> None:
    """Copies the first job on PostgreSQL until there are this many more ended trials. Quicker than ``fill``."""
    database = database_at(url)
    await database.open()
    try:
        await database.write(lambda connection: _copy_first_job(connection, trials_wanted // TRIALS_OF_A_JOB))
        await database.write(_as_later)
    finally:
        await database.close()


def _copy_first_job(connection: Connection, copies: int) -> None:
    of_job = ", ".join(column.name for column in jobs.c if column.name != "id")
    of_trial = ", ".join(column.name for column in trials.c if column.name not in ("id", "job_id"))
    last = {"job": connection.scalar(sa.func.max(jobs.c.id)), "trial": connection.scalar(sa.func.max(trials.c.id))}
    given = {**last, "copies": copies, "first": connection.scalar(sa.func.min(jobs.c.id))}
    for statement in (
        f"INSERT INTO jobs ({of_job}) SELECT {of_job} FROM jobs, generate_series(1, :copies) WHERE id = :first",
        f"INSERT INTO trials (job_id, {of_trial}) SELECT new.id, old.* FROM jobs new, "
        f"(SELECT {of_trial} FROM trials WHERE job_id = :first) old WHERE new.id > :job",
        "INSERT INTO attempts (trial_id, number, worker, started_at, ended_at, result) "
        "SELECT id, 1, worker, started_at, ended_at, (SELECT result FROM attempts LIMIT 1) "
        "FROM trials WHERE id > :trial",
    ):
        used = {name: value for name, value in given.items() if f":{name}" in statement}
        connection.execute(sa.text(statement), used)


def _as_later(connection: Connection) -> None:
    """PostgreSQL looks at its tables by itself after a while; SQLite does not."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("ANALYZE"))


def _write_tasks(connection: Connection) -> None:
    found = [a_task(number) for number in range(TASKS)]
    rows = [
        {
            "digest": task.digest,
            "name": task.name,
            "document": task.model_dump_json(),
            "saved_at": _BEGAN,
            "used_at": _BEGAN,
        }
        for task in found
    ]
    connection.execute(sa.insert(tasks), rows)


def _write_jobs(connection: Connection, numbers: range) -> None:
    result = RESULT.model_dump_json()
    for number in numbers:
        spec, at = a_spec(f"job {number}"), _BEGAN + timedelta(minutes=number)
        values = {"spec": spec.model_dump_json(), "name": spec.name, "created_at": at, "ended_at": at}
        job_id = connection.execute(sa.insert(jobs).values(values).returning(jobs.c.id)).scalar_one()
        rows = [_row(job_id, trial, place, at) for place, trial in enumerate(plan(spec))]
        connection.execute(sa.insert(trials), rows)
        ids = connection.execute(sa.select(trials.c.id).where(trials.c.job_id == job_id)).scalars().all()
        given = [
            {"trial_id": trial_id, "number": 1, "worker": "w", "started_at": at, "ended_at": at, "result": result}
            for trial_id in ids
        ]
        connection.execute(sa.insert(tries), given)


def _row(job_id: int, trial: NewTrial, place: int, at: datetime) -> dict[str, Any]:
    outcome = _OUTCOMES[place % len(_OUTCOMES)]
    return {
        "job_id": job_id,
        "task_name": trial.task.name,
        "task_digest": trial.task.digest,
        "agent_index": trial.agent_index,
        "agent": trial.agent,
        "model": trial.model,
        "repeat": trial.attempt,
        "state": TrialState.ENDED.value,
        "outcome": outcome.value,
        "cause": Cause.SANDBOX.value if outcome is Outcome.ERROR else None,
        "attempt": 1,
        "attempts_base": 0,
        "worker": "w",
        "cancel_requested": False,
        "created_at": at,
        "started_at": at,
        "ended_at": at,
        "result_attempt": 1,
        "reward": float(outcome is Outcome.PASSED),
        "marks": "",
        "seconds": 7.0,
        "input_tokens": 1000,
        "output_tokens": 100,
        "cost_usd": 0.01,
    }
