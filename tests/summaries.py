"""What a store would tell about rows that a test made by hand, and the report over them."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.domain.job import Job
from seatrial.domain.reports.report import JobReport
from seatrial.domain.result import Spent
from seatrial.engine.reports.reporting import report_numbers
from seatrial.ports.store import TrialNumbers, TrialRow


def summarised(rows: Sequence[TrialRow]) -> list[TrialNumbers]:
    return [_numbers(row) for row in rows]


def reported(rows: Sequence[TrialRow], job: Job, *, with_tests: bool = False) -> JobReport:
    tests = {row.trial.id: row.result.tests for row in rows if row.result} if with_tests else {}
    return report_numbers(summarised(rows), job, tests)


def _numbers(row: TrialRow) -> TrialNumbers:
    trial, result = row.trial, row.result
    return TrialNumbers(
        trial_id=trial.id,
        task=trial.task,
        agent_index=trial.agent_index,
        attempt=trial.attempt,
        added=trial.added,
        tries=trial.try_number,
        outcome=trial.outcome,
        cause=trial.cause,
        reward=result.reward if result else None,
        marks=result.marks if result else (),
        seconds=result.seconds if result else None,
        spent=Spent().and_also(result) if result else Spent(),
    )
