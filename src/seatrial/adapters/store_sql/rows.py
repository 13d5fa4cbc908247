"""Converts rows into domain values and back. Contains no SQL and no decisions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy.engine import Result as Rows

from seatrial.adapters.store_sql.tables import trials
from seatrial.domain.fleet.needs import Needs
from seatrial.domain.frozen import trusted
from seatrial.domain.job import Job, JobSpec
from seatrial.domain.reports.failures import FailedTest, FailedTrial
from seatrial.domain.result import Result, Spent, TestStatus, Try
from seatrial.domain.suffered import Suffered
from seatrial.domain.task import Task, TaskRef
from seatrial.domain.trial import Cause, Mark, Outcome, Phase, Trial, TrialState
from seatrial.ports.store import FailedRow, TrialNumbers, TrialRow, TrialSummary

_SMALL = 16_000
_COLUMNS = {"attempt": "repeat", "try_number": "attempt", "tries_base": "attempts_base"}
"""Columns, and fields of the API, keep the names that they began with."""
_CHANGING = (
    "state",
    "outcome",
    "cause",
    "try_number",
    "tries_base",
    "shared_losses",
    "outside_losses",
    "search_group",
    "worker",
    "lease_until",
    "not_before",
    "phase",
    "cancel_requested",
    "limit_sec",
    "started_at",
    "ended_at",
)
_FIXED = ("id", "job_id", "agent_index", "agent", "model", "attempt", "reruns", "created_at")
_OF_TRIAL = tuple((name, _COLUMNS.get(name, name)) for name in _FIXED + _CHANGING)
"""Fields and their columns."""
_SUMMED = ("reward", "seconds", "input_tokens", "output_tokens", "cost_usd")
_OF_SPENT = tuple((name, f"spent_{name}") for name in Spent.model_fields)
_OF_SUFFERED = tuple(Suffered.model_fields)
_UNHURT = Suffered()
NUMBERS = (
    trials.c.id,
    trials.c.task_name,
    trials.c.task_digest,
    trials.c.agent_index,
    trials.c.repeat,
    trials.c.reruns,
    trials.c.attempt,
    trials.c.outcome,
    trials.c.cause,
    trials.c.reward,
    trials.c.marks,
    trials.c.seconds,
    *(trials.c[column] for _, column in _OF_SPENT),
    *(trials.c[name] for name in _OF_SUFFERED),
)
"""The columns that ``numbers_of`` reads, in their order."""
_OF_TRY = ("trial_id", "number", "worker", "started_at", "ended_at")
_OF_JOB = ("id", "created_at", "cancelled_at", "ended_at", "renamed", "pinned_at")
_STATES = {state.value: state for state in TrialState}
_OUTCOMES: dict[str | None, Outcome | None] = {None: None, **{outcome.value: outcome for outcome in Outcome}}
_CAUSES: dict[str | None, Cause | None] = {None: None, **{cause.value: cause for cause in Cause}}
_UNPASSED = (TestStatus.FAILED.value, TestStatus.ERROR.value)
_PHASES: dict[str | None, Phase | None] = {None: None, **{phase.value: phase for phase in Phase}}


Values = dict[str, Any]
"""One row by the names of its columns."""


def values_of(result: Rows[Any]) -> list[Values]:
    """All rows as dictionaries. SQLAlchemy's mappings look up every name again, which doubles the time to read a
    page."""
    names = tuple(result.keys())
    return [dict(zip(names, row, strict=True)) for row in result]


def job_of(row: Values, spec: JobSpec) -> Job:
    values = {name: row[name] for name in _OF_JOB}
    values["spec"] = spec
    return trusted(Job, values)


def task_of(document: str) -> Task:
    """Caches small tasks, because tasks never change and lists read the same ones often."""
    return _small_task(document) if len(document) <= _SMALL else Task.model_validate_json(document)


@lru_cache(maxsize=1024)
def _small_task(document: str) -> Task:
    return Task.model_validate_json(document)


def trial_of(row: Values) -> Trial:
    """Skips validation, because the store wrote these values and a page has hundreds of rows."""
    values = {name: row[column] for name, column in _OF_TRIAL}
    values["task"] = trusted(TaskRef, {"name": row["task_name"], "digest": row["task_digest"]})
    values["state"] = _STATES[row["state"]]
    values["outcome"] = _OUTCOMES[row["outcome"]]
    values["cause"] = _CAUSES[row["cause"]]
    values["phase"] = _PHASES[row["phase"]]
    values["needs"] = Needs.parse(row["needs"])
    return trusted(Trial, values)


def trial_row_of(row: Values) -> TrialRow:
    return TrialRow(trial=trial_of(row), result=result_of(row["result"]))


def summary_of(row: Values) -> TrialSummary:
    values = {name: row[name] for name in _SUMMED}
    values["trial"] = trial_of(row)
    values["spent"] = spent_of(row)
    values["suffered"] = _suffered([row[name] for name in _OF_SUFFERED])
    values["marks"] = tuple(map(Mark, marks.split())) if (marks := row["marks"]) else ()
    return trusted(TrialSummary, values)


def numbers_of(rows: Iterable[Any]) -> list[TrialNumbers]:
    """From rows of ``NUMBERS``. A task is made once: it has many trials."""
    tasks: dict[tuple[str, str], TaskRef] = {}
    names = tuple(Spent.model_fields)
    found = []
    for number, name, digest, index, attempt, reruns, tries, outcome, cause, reward, marks, seconds, *more in rows:
        spent, hurt = more[: len(names)], more[len(names) :]
        if (task := tasks.get((name, digest))) is None:
            task = tasks[name, digest] = TaskRef(name=name, digest=digest)
        spent[0] = spent[0] or 0.0  # seconds, of a trial without a result
        found.append(
            TrialNumbers(
                number,
                task,
                index,
                attempt,
                reruns is not None,
                tries,
                _OUTCOMES[outcome],
                _CAUSES[cause],
                reward,
                tuple(map(Mark, marks.split())) if marks else (),
                seconds,
                trusted(Spent, dict(zip(names, spent, strict=True))),
                _suffered(hurt),
            )
        )
    return found


def failed_of(row: Any) -> FailedRow:
    """Reads only what decided the trial from its result, without validation: a job may have thousands."""
    number, name, digest, index, attempt, outcome, cause, marks, document = row
    result = json.loads(document) if document else {}
    tests = tuple(
        FailedTest(test["name"], test.get("message") or "")
        for test in result.get("tests") or ()
        if test["status"] in _UNPASSED
    )
    trial = FailedTrial(
        trial_id=number,
        task=name,
        configuration="",
        attempt=attempt,
        outcome=Outcome(outcome),
        cause=_CAUSES[cause],
        marks=tuple(map(Mark, marks.split())) if marks else (),
        message=result.get("message") or "",
        tests=tests,
        last_command=result.get("last_command") or "",
    )
    return FailedRow(trial, digest, index)


def _suffered(values: Sequence[Any]) -> Suffered:
    """One value for all trials that measured nothing."""
    if all(value is None for value in values):
        return _UNHURT
    return trusted(Suffered, dict(zip(_OF_SUFFERED, values, strict=True)))


def spent_of(row: Values) -> Spent:
    values = {name: row[column] for name, column in _OF_SPENT}
    values["seconds"] = values["seconds"] or 0.0
    return trusted(Spent, values)


def try_of(row: Values, start: str = "") -> Try:
    """``start`` is the prefix of the column names."""
    values = {name: row[f"{start}{name}"] for name in _OF_TRY}
    values["result"] = result_of(row[f"{start}result"])
    return trusted(Try, values)


def result_of(document: str | None) -> Result | None:
    return Result.model_validate_json(document) if document else None


def changing_values(trial: Trial) -> dict[str, Any]:
    """The column values that ``transition`` may change."""
    return {_COLUMNS.get(name, name): getattr(trial, name) for name in _CHANGING}


def summary_values(row: Values, result: Result) -> dict[str, Any]:
    """What the trial's row tells about its tries, once the current one has this result."""
    spent = spent_of(row).and_also(result)
    return {
        **{column: getattr(spent, name) for name, column in _OF_SPENT},
        **{name: getattr(result.suffered, name) for name in _OF_SUFFERED},
        "result_attempt": row["attempt"],
        "reward": result.reward,
        "marks": " ".join(result.marks),
        "seconds": result.seconds,
        "input_tokens": result.usage.input_tokens,
        "output_tokens": result.usage.output_tokens,
        "cost_usd": result.usage.cost_usd,
    }
