"""What a store would tell about rows that a test made by hand: summaries, tests, and the report over them."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.domain.job import Job
from seatrial.domain.report import JobReport
from seatrial.domain.result import Spent
from seatrial.engine.reports.reporting import report_summaries
from seatrial.ports.store import TrialRow, TrialSummary


def summarised(rows: Sequence[TrialRow]) -> list[TrialSummary]:
    return [_summary(row) for row in rows]


def reported(rows: Sequence[TrialRow], job: Job, *, with_tests: bool = False) -> JobReport:
    tests = {row.trial.id: row.result.tests for row in rows if row.result} if with_tests else {}
    return report_summaries(summarised(rows), job, tests)


def _summary(row: TrialRow) -> TrialSummary:
    result = row.result
    if result is None:
        return TrialSummary(trial=row.trial)
    return TrialSummary(
        trial=row.trial,
        reward=result.reward,
        marks=result.marks,
        seconds=result.seconds,
        input_tokens=result.usage.input_tokens,
        output_tokens=result.usage.output_tokens,
        cost_usd=result.usage.cost_usd,
        spent=Spent().and_also(result),
    )
