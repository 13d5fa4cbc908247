"""The ``test.sh`` of a mapped Terminal-Bench 1 task, run for real: verdicts as Terminal-Bench gives them."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.adapters.tasks_terminalbench1 import grading_script
from seatrial.adapters.terminalbench1.config import ParserName
from tests.properties import trying


@dataclass(frozen=True)
class Graded:
    reward: str | None
    tests: dict[str, str]
    messages: dict[str, str]
    output: str


class Grader:
    """Runs the script as Harbor does: output into the log, exit status ignored."""

    def __init__(self, place: Path) -> None:
        self.tests = place / "tests"
        self.logs = place / "logs"
        self.tests.mkdir(parents=True)
        self.logs.mkdir()

    def __call__(self, run_tests: str, parser: ParserName = "pytest", limit: float = 300.0) -> Graded:
        (self.tests / "run-tests.sh").write_text(run_tests)
        (self.tests / "test.sh").write_text(grading_script(parser, limit, str(self.logs)))
        (self.tests / "test.sh").chmod(0o755)
        for old in self.logs.iterdir():
            old.unlink()
        command = f"({self.tests}/test.sh) > {self.logs}/test-stdout.txt 2>&1"
        subprocess.run(["bash", "-c", command], check=False, timeout=400)
        reward = self.logs / "reward.txt"
        results = self.logs / "ctrf.json"
        rows = json.loads(results.read_text())["results"]["tests"] if results.exists() else []
        return Graded(
            reward.read_text().strip() if reward.exists() else None,
            {row["name"]: row["status"] for row in rows},
            {row["name"]: row.get("message", "") for row in rows},
            (self.logs / "test-stdout.txt").read_text(errors="replace"),
        )

    def of_output(self, output: str, parser: ParserName = "pytest") -> Graded:
        (self.tests / "output").write_text(output)
        return self(f"cat {self.tests}/output", parser)


@pytest.fixture
def grader(tmp_path: Path) -> Grader:
    return Grader(tmp_path)


HEADER = "=========== short test summary info ============\n"


def reference(content: str) -> dict[str, bool] | None:
    """Terminal-Bench's rules for pytest, told again: which tests there are and whether each counts as passed."""
    parts = re.split(r"=+\s*short test summary info\s*=+", content, maxsplit=1, flags=re.IGNORECASE)
    if len(parts) < 2:
        return None
    verdicts: dict[str, bool] = {}
    for line in parts[1].split("\n"):
        text = " - ".join(line.split(" - ")[:-1]) if line.startswith("FAILED") and " - " in line else line
        words = text.split(maxsplit=1)
        if len(words) < 2:
            continue
        status = words[0].strip(":")
        name = words[1].strip().split("::", 1)[-1]
        if name and status in ("PASSED", "FAILED", "SKIPPED", "XFAIL", "XPASS", "ERROR"):
            verdicts[name] = status in ("PASSED", "SKIPPED", "XFAIL")
    return verdicts


class TestPytest:
    def test_all_passed(self, grader: Grader) -> None:
        graded = grader.of_output(
            HEADER + "PASSED tests/a.py::test_a\nPASSED tests/a.py::test_b[x]\n=== 2 passed ===\n"
        )
        assert graded.reward == "1"
        assert graded.tests == {"test_a": "passed", "test_b[x]": "passed"}

    def test_one_failed(self, grader: Grader) -> None:
        graded = grader.of_output(HEADER + "PASSED a.py::a\nFAILED a.py::b - assert \"x\" == 'y\\n'\n")
        assert graded.reward == "0"
        assert graded.tests == {"a": "passed", "b": "failed"}
        assert graded.messages["b"] == "assert \"x\" == 'y\\n'"

    @pytest.mark.parametrize(
        ("line", "reward"),
        [
            ("SKIPPED [1] a.py:3: no reason", "1"),
            ("XFAIL a.py::x - expected", "1"),
            ("XPASS a.py::x", "0"),
            ("ERROR a.py::x - ImportError: no", "0"),
            ("ERROR a.py", "0"),
        ],
    )
    def test_other_states(self, grader: Grader, line: str, reward: str) -> None:
        assert grader.of_output(f"{HEADER}PASSED a.py::a\n{line}\n").reward == reward

    def test_the_last_word_on_a_test_counts(self, grader: Grader) -> None:
        assert grader.of_output(HEADER + "FAILED a::x - no\nPASSED a::x\n").reward == "1"
        assert grader.of_output(HEADER + "PASSED a::x\nFAILED b::x - no\n").reward == "0"

    def test_colours_and_carriage_returns_are_seen_through(self, grader: Grader) -> None:
        coloured = (
            "\x1b[36m====\x1b[1m short test summary info \x1b[0m====\n\x1b[32mPASSED\x1b[0m a.py::\x1b[1mx\x1b[0m\r\n"
        )
        graded = grader.of_output(coloured)
        assert (graded.reward, graded.tests) == ("1", {"x": "passed"})

    @pytest.mark.parametrize("output", ["", "1 passed\n", "PASSED a.py::x\n", HEADER, HEADER + "nothing here\n"])
    def test_no_verdict_means_no_reward(self, grader: Grader, output: str) -> None:
        graded = grader.of_output(output)
        assert (graded.reward, graded.tests) == (None, {})
        assert "No verdict" in graded.output

    @trying(40)
    @given(
        st.lists(
            st.one_of(
                st.sampled_from(
                    [HEADER.strip(), "=Short Test Summary INFO=", "", "PASSED", "=== 1 failed, 2 passed ==="]
                ),
                st.tuples(
                    st.sampled_from(
                        ["PASSED", "FAILED", "ERROR", "SKIPPED", "XFAIL", "XPASS", "PASSED:", " PASSED", "UNKNOWN"]
                    ),
                    st.sampled_from(
                        ["a.py::t", "b.py::t", "a.py::t[x - y]", "a.py::C::m", "t", "::", "a - b", "*", "@", "$(x)"]
                    ),
                    st.sampled_from(["", " - why", " - a - b", "  "]),
                ).map(lambda parts: f"{parts[0]} {parts[1]}{parts[2]}"),
            ),
            max_size=12,
        )
    )
    def test_agrees_with_terminal_bench(self, grader: Grader, lines: list[str]) -> None:
        output = "\n".join(lines) + "\n"
        expected = reference(output)
        graded = grader.of_output(output)
        if not expected:
            assert graded.reward is None
        else:
            assert graded.reward == ("1" if all(expected.values()) else "0")
            assert {name: status != "failed" for name, status in graded.tests.items()} == expected


class TestRunning:
    def test_an_early_exit_does_not_skip_the_verdict(self, grader: Grader) -> None:
        graded = grader(f"echo '{HEADER.strip()}'\necho 'PASSED a::x'\nexit 7\necho never")
        assert graded.reward == "1"
        assert "never" not in graded.output

    def test_a_script_that_kills_itself(self, grader: Grader) -> None:
        assert grader(f"echo '{HEADER.strip()}'\necho 'FAILED a::x - no'\nkill -9 $$").reward == "0"

    def test_the_time_limit_is_a_failed_attempt(self, grader: Grader) -> None:
        graded = grader(f"echo '{HEADER.strip()}'\necho 'PASSED a::x'\nsleep 600", limit=1)
        assert (graded.reward, graded.tests) == ("0", {"run-tests.sh": "failed"})
        assert "limit of 1 seconds" in graded.messages["run-tests.sh"]

    def test_what_the_tests_leave_running_does_not_hold_the_verdict(self, grader: Grader) -> None:
        graded = grader(f"(while true; do echo noise; sleep 0.01; done) &\necho '{HEADER.strip()}'\necho 'PASSED a::x'")
        assert graded.reward == "1"

    def test_tests_know_where_they_are_and_both_outputs_are_kept(self, grader: Grader) -> None:
        graded = grader("echo $TEST_DIR; echo oops >&2")
        assert str(grader.tests) in graded.output
        assert "oops" in graded.output

    def test_a_test_script_of_the_tasks_own_is_put_back(self, grader: Grader) -> None:
        (grader.tests / ".task-test.sh").write_text(f"echo '{HEADER.strip()}'\necho 'PASSED mine::x'\n")
        assert grader('bash "$TEST_DIR/test.sh"').tests == {"x": "passed"}

    def test_needs_no_program_but_bash(self, grader: Grader, tmp_path: Path) -> None:
        """The image may have no Python, no awk, no coreutils."""
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "bash").symlink_to("/bin/bash")
        grader(f"echo '{HEADER.strip()}'; echo 'PASSED a::x'")
        (grader.logs / "reward.txt").unlink()
        command = f"({grader.tests}/test.sh) > {grader.logs}/test-stdout.txt 2>&1"
        subprocess.run(["/bin/bash", "-c", command], env={"PATH": str(tmp_path / "bin")}, check=True)
        assert (grader.logs / "reward.txt").read_text() == "1\n"

    def test_a_job_can_stretch_the_limit(self, grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
        slow = f"sleep {{}}; echo '{HEADER.strip()}'; echo 'PASSED a::x'"
        assert grader(slow.format(600), limit=0.5).reward == "0"
        monkeypatch.setenv("SEATRIAL_TEST_TIMEOUT_SEC", "300")
        assert grader(slow.format(1.5), limit=0.5).reward == "1"


@pytest.mark.parametrize(
    ("parser", "output", "reward"),
    [
        ("swebench", "SWEBench results starts here\nPASSED\nSWEBench results ends here\n", "1"),
        ("swebench", "SWEBench results starts here\nFAILED\nSWEBench results ends here\n", "0"),
        ("swebench", "could not fetch the repository\n", None),
        ("sweperf", "SWE-Perf results starts here\nPASSED\nSWE-Perf results ends here\n", "1"),
        ("sweperf", "nothing\n", None),
        ("mlebench", "x\nMLEBench results starts here\nALL TESTS PASSED\nMLEBench results ends here\n", "1"),
        ("mlebench", "nothing\n", "0"),
        ("swelancer", "SWE Lancer Success\n", "1"),
        ("swelancer", "swe lancer failure, user_tool completed\n", "0"),
        ("swelancer", "user_tool ... completed\n", "1"),
        ("swelancer", "nothing\n", "0"),
    ],
)
def test_the_other_parsers(grader: Grader, parser: ParserName, output: str, reward: str | None) -> None:
    assert grader.of_output(output, parser).reward == reward
