"""Reports of tests. With ``CI=true`` a skipped test is a failure: what was not run was not shown.

``tests/conftest.py`` imports the hooks.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return encodable(refuse_skip((yield)))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A whole module may skip itself while it is collected."""
    return refuse_skip((yield))


def refuse_skip[Report: (pytest.TestReport, pytest.CollectReport)](report: Report) -> Report:
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"With CI=true a skipped test is a failure: {report.longrepr}"
    return report


def encodable(report: pytest.TestReport) -> pytest.TestReport:
    """Test processes send reports as UTF-8. What a hostile test logged may hold half characters."""
    report.sections = [(name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections]
    return report
