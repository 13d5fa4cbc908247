"""Whole messages of failed tests, from what pytest prints; and any text whatever does no harm."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seatrial.adapters.runner_harbor.pytest_messages import error_lines, heading_of, messages_in
from seatrial.adapters.runner_harbor.tests_found import tests_in as found_tests
from seatrial.domain.result import TestStatus
from tests.properties import trying

TESTS = """
import pytest

def test_long():
    print("E   this was printed, and is no error")
    print("____ test_other ____")
    found = "x" * 200
    assert found == "the answer that the task asks for", f"the file holds {found} - and nothing else"

class TestGroup:
    @pytest.mark.parametrize("number", [1, 2])
    def test_many(self, number):
        assert {"a": 1, "b": [1, 2, 3]} == {"a": number, "b": [1, 2, 4]}

@pytest.fixture
def broken():
    raise OSError("the disk is gone " + "y" * 100)

def test_setup(broken):
    pass

def test_good():
    pass
"""


@pytest.fixture(scope="module", params=["auto", "short"])
def output(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> str:
    """What pytest prints on a screen of 80 columns, as in a task."""
    folder = tmp_path_factory.mktemp("tests")
    (folder / "test_outputs.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", f"--tb={request.param}", "."]
    plain = {"COLUMNS": "80", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True, check=False).stdout


def test_messages_are_whole(output: str, tmp_path: Path) -> None:
    assert "AssertionError: the file holds xx" in output
    (tmp_path / "test-stdout.txt").write_text(output)
    tests = {test.name.partition("::")[2]: test for test in found_tests(tmp_path)}
    long = tests["test_long"].message
    assert long.startswith("AssertionError: the file holds " + "x" * 200 + " - and nothing else\n")
    assert "printed" not in long
    assert "Differing items:" in tests["TestGroup::test_many[1]"].message
    assert "{'b': [1, 2, 3]} != {'b': [1, 2, 4]}" in tests["TestGroup::test_many[2]"].message
    assert (tests["test_setup"].status, tests["test_setup"].message) == (
        TestStatus.ERROR,
        "OSError: the disk is gone " + "y" * 100,
    )
    assert (tests["test_good"].status, tests["test_good"].message) == (TestStatus.PASSED, "")


def test_messages_of_terminal_bench_1_are_whole(output: str, tmp_path: Path) -> None:
    """Its results have the message after the last dash of a line that was cut to 80 columns."""
    cut = [{"name": "test_long", "status": "failed", "duration": 0, "message": "AssertionError: the..."}]
    same = [
        {"name": "test_good", "status": "passed", "duration": 0},
        {"name": "gone", "status": "failed", "message": "m"},
    ]
    (tmp_path / "ctrf.json").write_text(json.dumps({"results": {"tests": cut + same}}))
    assert [test.message for test in found_tests(tmp_path)] == ["AssertionError: the...", "", "m"]
    (tmp_path / "test-stdout.txt").write_text(
        output.replace("test_long", "\x1b[31mtest_long\x1b[0m").replace("\n", "\r\n")
    )
    long, good, gone = found_tests(tmp_path)
    assert long.message.startswith("AssertionError: the file holds " + "x" * 200)
    assert (long.status, good.message, gone.message) == (TestStatus.FAILED, "", "m")


def test_the_error_of_a_trace_says_more_than_that_there_was_one(tmp_path: Path) -> None:
    trace = "def test():\n>   assert a == b\nE   AssertionError: one\nE     + two\n\ntest.py:3: AssertionError"
    entry = {"name": "t", "status": "failed", "message": "The test failed in the call phase", "trace": trace}
    (tmp_path / "ctrf.json").write_text(json.dumps({"results": {"tests": [entry, {**entry, "trace": "no mark"}]}}))
    first, second = found_tests(tmp_path)
    assert (first.message, second.message) == ("AssertionError: one\n  + two", "The test failed in the call phase")


def test_a_name_that_two_tests_share_tells_nothing() -> None:
    twice = (
        "=== FAILURES ===\n___ test_a ___\nE  one\n___ test_b ___\nE  two\n___ test_a ___\nE  three\n=== x ===\nE  no\n"
    )
    assert messages_in(twice) == {"test_b": "two"}


@pytest.mark.parametrize(
    ("test", "heading"),
    [
        ("../tests/test_outputs.py::test_a[x::y]", "test_a[x.y]"),
        ("test_a", "test_a"),
        ("TestA::test_b", "TestA.test_b"),
        ("", ""),
    ],
)
def test_headings(test: str, heading: str) -> None:
    assert heading_of(test) == heading


lines = st.sampled_from(
    [
        "=== FAILURES ===",
        "=== ERRORS ===",
        "____ a ____",
        "_ a _",
        "E",
        "E   x",
        "--- Captured ---",
        "===",
        "_",
        "E\r",
        "\x1b[3",
    ]
)


@trying(150)
@given(st.one_of(st.text(), st.lists(st.one_of(lines, st.text(max_size=10)), max_size=30).map("\n".join)))
@example("=== FAILURES ===\n" + "_ t _\n" + "E " + "x" * 100_000 + "\nE y" * 10_000)
@example("=== FAILURES ===\n" + "\n".join(f"_ {number} _\nE x" for number in range(6000)))
@example("_" * 200_000 + " " * 200_000)
def test_any_output_is_taken_and_bounded(text: str) -> None:
    found = messages_in(text)
    assert len(found) <= 5000
    assert all(len(message) <= 4000 and message for message in found.values())
    assert len(error_lines(text)) <= 4000
