"""Between rows and domain values. No SQL and no decisions here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy.engine import CursorResult, Row

from seatrial.domain.job import Job, JobSpec
from seatrial.domain.result import Result
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Mark, Trial
from seatrial.ports.store import TrialRow, TrialSummary

_SMALL = 16_000
_CHANGING = (
    "state",
    "outcome",
    "cause",
    "attempt",
    "attempts_base",
    "shared_losses",
    "worker",
    "lease_until",
    "not_before",
    "phase",
    "cancel_requested",
    "limit_sec",
    "started_at",
    "ended_at",
)
_FIXED = ("id", "job_id", "agent_index", "agent", "model", "repeat", "created_at")


Values = Mapping[str, Any]
"""One row by the names of its columns."""


def values_of(result: CursorResult[Any]) -> list[Values]:
    """All rows. Plain dictionaries: SQLAlchemy's own mappings look every name up anew, which is half of the cost of
    reading a page."""
    names = tuple(result.keys())
    return [dict(zip(names, row, strict=True)) for row in result]


def job_of(row: Row[Any]) -> Job:
    return Job(
        id=row.id,
        spec=_spec_of(row.spec),
        created_at=row.created_at,
        cancelled_at=row.cancelled_at,
        ended_at=row.ended_at,
    )


def _spec_of(document: str) -> JobSpec:
    """Specs never change and lists read the same ones again and again; large ones are not worth the memory."""
    return _small_spec_of(document) if len(document) <= _SMALL else JobSpec.model_validate_json(document)


@lru_cache(maxsize=512)
def _small_spec_of(document: str) -> JobSpec:
    return JobSpec.model_validate_json(document)


def trial_of(row: Values) -> Trial:
    task = TaskRef(name=row["task_name"], digest=row["task_digest"])
    return Trial(task=task, **{name: row[name] for name in _FIXED + _CHANGING})


def trial_row_of(row: Values) -> TrialRow:
    return TrialRow(trial=trial_of(row), result=result_of(row["result"]))


def summary_of(row: Values) -> TrialSummary:
    return TrialSummary(
        trial=trial_of(row),
        reward=row["reward"],
        marks=tuple(Mark(mark) for mark in (row["marks"] or "").split()),
        seconds=row["seconds"],
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        cost_usd=row["cost_usd"],
    )


def result_of(document: str | None) -> Result | None:
    return Result.model_validate_json(document) if document else None


def changing_values(trial: Trial) -> dict[str, Any]:
    """What ``transition`` may have changed, as column values."""
    return {name: getattr(trial, name) for name in _CHANGING}


def summary_values(number: int, result: Result) -> dict[str, Any]:
    return {
        "result_attempt": number,
        "reward": result.reward,
        "marks": " ".join(result.marks),
        "seconds": result.seconds,
        "input_tokens": result.usage.input_tokens,
        "output_tokens": result.usage.output_tokens,
        "cost_usd": result.usage.cost_usd,
    }
