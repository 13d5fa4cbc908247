"""Test results by task and configuration. Used by ``report`` if the facts contain tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from seatrial.domain.frozen import Frozen
from seatrial.domain.reports.fact import TrialFact
from seatrial.domain.result import TestStatus


class TestCell(Frozen):
    """One test over the trials of one configuration."""

    __test__ = False  # not a pytest class

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    error: int = 0

    @property
    def run(self) -> int:
        return self.passed + self.failed + self.error


class TestLine(Frozen):
    """One test of one task, by configuration label. Configurations that never ran the test are absent."""

    __test__ = False  # not a pytest class

    task: str
    test: str
    cells: dict[str, TestCell]


def matrix(facts: Iterable[TrialFact]) -> tuple[TestLine, ...]:
    found: dict[tuple[str, str], dict[str, Counter[TestStatus]]] = {}
    for fact in facts:
        for test in fact.tests:
            line = found.setdefault((fact.task, test.name), {})
            line.setdefault(fact.configuration, Counter())[test.status] += 1
    return tuple(
        TestLine(task=task, test=test, cells={label: _cell(line[label]) for label in sorted(line)})
        for (task, test), line in sorted(found.items())
    )


def _cell(statuses: Counter[TestStatus]) -> TestCell:
    return TestCell(**{status.value: times for status, times in statuses.items()})
