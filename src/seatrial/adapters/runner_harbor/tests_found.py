"""Per-test results of a verifier: from CTRF where it wrote one, else from pytest's output. Untrusted, so bounded."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from seatrial.domain.result import TestResult, TestStatus

_LARGEST_REPORT = 8 << 20
_LONGEST_MESSAGE = 4000
_MOST_TESTS = 5000

_CTRF_STATUS = {
    "passed": TestStatus.PASSED,
    "failed": TestStatus.FAILED,
    "skipped": TestStatus.SKIPPED,
    "pending": TestStatus.SKIPPED,
}
_PYTEST_STATUS = {
    "PASSED": TestStatus.PASSED,
    "XPASS": TestStatus.PASSED,
    "FAILED": TestStatus.FAILED,
    "ERROR": TestStatus.ERROR,
    "SKIPPED": TestStatus.SKIPPED,
    "XFAIL": TestStatus.SKIPPED,
}
_SUMMARY_LINE = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (\S+::\S.*?)(?: - (.*))?$")
_VERBOSE_LINE = re.compile(r"^(\S+::\S.*?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b")


def tests_in(verifier_dir: Path) -> tuple[TestResult, ...]:
    """What the verifier told about single tests; empty where it told nothing."""
    report = verifier_dir / "ctrf.json"
    if _is_readable(report):
        return _from_ctrf(report.read_text(errors="replace"))
    for name in ("test-stdout.txt", "test_stdout.txt"):
        if _is_readable(verifier_dir / name):
            return from_pytest_output((verifier_dir / name).read_text(errors="replace"))
    return ()


def _is_readable(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST_REPORT


def _from_ctrf(raw: str) -> tuple[TestResult, ...]:
    try:
        entries = json.loads(raw)["results"]["tests"][:_MOST_TESTS]
        return tuple(_ctrf_test(entry) for entry in entries)
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()


def _ctrf_test(entry: dict[str, Any]) -> TestResult:
    duration = entry.get("duration")
    return TestResult(
        name=str(entry["name"]),
        status=_CTRF_STATUS.get(str(entry.get("status")), TestStatus.ERROR),
        seconds=float(duration) / 1000 if isinstance(duration, (int, float)) else None,
        message=str(entry.get("message") or entry.get("trace") or "")[:_LONGEST_MESSAGE],
    )


def from_pytest_output(text: str) -> tuple[TestResult, ...]:
    """The short summary (``-rA``) tells every test; else the lines of ``-v`` do."""
    found: dict[str, TestResult] = {}
    for line in text.splitlines():
        if summary := _SUMMARY_LINE.match(line):
            status, name, message = summary.groups()
            found[name] = TestResult(
                name=name, status=_PYTEST_STATUS[status], message=(message or "")[:_LONGEST_MESSAGE]
            )
        elif verbose := _VERBOSE_LINE.match(line):
            name, status = verbose.groups()
            found.setdefault(name, TestResult(name=name, status=_PYTEST_STATUS[status]))
        if len(found) >= _MOST_TESTS:
            break
    return tuple(found.values())
