"""Reads per-test results of a verifier from CTRF, or else from pytest's output. Untrusted, so all sizes are limited."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from seatrial.adapters.runner_harbor.pytest_messages import error_lines, heading_of, messages_in
from seatrial.domain.result import TestResult, TestStatus

_LARGEST_REPORT = 8 << 20
_LONGEST_MESSAGE = 4000
_LONGEST_NAME = 1000
_LONGEST_LINE = 8000
_MOST_TESTS = 5000
_LONGEST_TEST_MSEC = 1e12
_MOST_TEXT = 2 << 20
"""Characters of all messages together."""

_OUTPUTS = ("test-stdout.txt", "test_stdout.txt")
_UNPASSED = (TestStatus.FAILED, TestStatus.ERROR)
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
# Linear time for any line.
_SUMMARY_LINE = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (\S+::\S.*?)(?: - (.*))?$")
_TEST_NAME = re.compile(r"[^\s:]++(?::[^\s:]++)*+::\S")
_STATUS = re.compile(r" (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b")


def tests_in(verifier_dir: Path) -> tuple[TestResult, ...]:
    """The results of single tests; empty if there is nothing readable."""
    output = next((text for name in _OUTPUTS if (text := _content(verifier_dir / name)) is not None), None)
    if (report := _content(verifier_dir / "ctrf.json")) is not None:
        return _bounded(_in_full(_from_ctrf(report), output))
    return _bounded(_in_full(from_pytest_output(output), output)) if output is not None else ()


def _in_full(found: Iterable[TestResult], output: str | None) -> Iterator[TestResult]:
    """With the whole message of each failed test, if pytest's output has it: the summary of pytest, and of a
    Terminal-Bench 1 task, is cut to the width of a screen."""
    whole: dict[str, str] | None = None
    for test in found:
        if test.status in _UNPASSED and output is not None:
            whole = messages_in(output) if whole is None else whole
            message = whole.get(heading_of(test.name))
            yield test.model_copy(update={"message": _text(message, _LONGEST_MESSAGE)}) if message else test
        else:
            yield test


def _content(path: Path) -> str | None:
    """Reads a regular file that is not too large. Does not open links, pipes and devices."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(file, "rb") as content:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_REPORT:
            return None
        return content.read(_LARGEST_REPORT).decode("utf-8", "replace")


def _from_ctrf(raw: str) -> Iterator[TestResult]:
    try:
        entries = json.loads(raw)["results"]["tests"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return
    for entry in entries[:_MOST_TESTS] if isinstance(entries, list) else ():
        if isinstance(entry, dict) and "name" in entry:
            yield _ctrf_test(entry)


def _ctrf_test(entry: dict[str, Any]) -> TestResult:
    status = entry.get("status")
    return TestResult(
        name=_text(entry["name"], _LONGEST_NAME),
        status=_CTRF_STATUS.get(status, TestStatus.ERROR) if isinstance(status, str) else TestStatus.ERROR,
        seconds=_seconds(entry.get("duration")),
        message=_text(_blame(entry.get("trace")) or entry.get("message") or entry.get("trace") or "", _LONGEST_MESSAGE),
    )


def _blame(trace: object) -> str:
    """pytest's CTRF says only that a test failed in ``message``; the error is in its trace."""
    return error_lines(trace) if isinstance(trace, str) else ""


def _seconds(duration: object) -> float | None:
    """Converts CTRF's milliseconds. ``None`` for an impossible duration."""
    if isinstance(duration, bool) or not isinstance(duration, (int, float)):
        return None
    return float(duration) / 1000 if 0 <= duration < _LONGEST_TEST_MSEC else None


def _text(value: object, longest: int) -> str:
    """Text that a store can save: JSON may contain lone surrogates and NUL."""
    text = value if isinstance(value, str) else "" if isinstance(value, (dict, list)) else str(value)
    return text[:longest].encode("utf-8", "replace").decode().replace("\0", "\N{SYMBOL FOR NULL}")


def _bounded(found: Iterable[TestResult]) -> tuple[TestResult, ...]:
    """All tests, with messages up to the limit of text."""
    tests, room = [], _MOST_TEXT
    for test in islice(found, _MOST_TESTS):
        room -= len(test.message)
        tests.append(test if room >= 0 else test.model_copy(update={"message": ""}))
    return tuple(tests)


def from_pytest_output(text: str) -> Iterable[TestResult]:
    """From the short summary (``-rA``), or from the lines of ``-v``."""
    found: dict[str, TestResult] = {}
    for whole in text.splitlines():
        line = whole[:_LONGEST_LINE]
        if summary := _SUMMARY_LINE.match(line):
            status, name, message = summary.groups()
            found[name] = TestResult(
                name=_text(name, _LONGEST_NAME),
                status=_PYTEST_STATUS[status],
                message=_text(message or "", _LONGEST_MESSAGE),
            )
        elif _TEST_NAME.match(line) and (status_at := _STATUS.search(line)):
            name, status = line[: status_at.start()], status_at[1]
            found.setdefault(name, TestResult(name=_text(name, _LONGEST_NAME), status=_PYTEST_STATUS[status]))
        if len(found) >= _MOST_TESTS:
            break
    return tuple(found.values())
