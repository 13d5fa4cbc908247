"""Harbor tasks: what is read from a good one, and every problem of a bad one at once, with file, line and fix."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.adapters.tasks_harbor import HarborTasks
from seatrial.domain.task import Severity, TaskFormat, TaskProblem
from seatrial.task_content.digest import content_digest

SAMPLES = Path(__file__).parents[3] / "samples"
READER = HarborTasks()


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A valid task that a test may spoil."""
    return Path(shutil.copytree(SAMPLES / "answer-file", tmp_path / "answer-file"))


def problems(task: Path) -> list[TaskProblem]:
    return list(READER.inspect(task).problems)


def only(task: Path) -> TaskProblem:
    found = problems(task)
    assert len(found) == 1, found
    return found[0]


def add_line(task: Path, after: str, line: str) -> int:
    """Adds a line to task.toml and tells its number."""
    lines = (task / "task.toml").read_text().splitlines()
    at = lines.index(after) + 1
    lines.insert(at, line)
    (task / "task.toml").write_text("\n".join(lines) + "\n")
    return at + 1


def test_everything_a_task_says_about_itself_is_read() -> None:
    inspection = READER.inspect(SAMPLES / "tidy-the-list")
    found = inspection.task
    assert inspection.problems == ()
    assert found is not None
    assert (found.name, found.format) == ("tidy-the-list", TaskFormat.HARBOR)
    assert (found.category, found.difficulty, found.tags) == ("data", "easy", ("text", "named-rewards"))
    assert (found.agent_timeout_sec, found.verifier_timeout_sec, found.build_timeout_sec) == (120, 60, 600)
    assert (found.resources.cpus, found.resources.memory_mb, found.resources.gpus) == (1, 512, 0)
    assert (found.network_mode, found.os, found.docker_image, found.services) == ("no-network", "linux", None, ())
    assert found.has_solution
    assert found.digest == content_digest(SAMPLES / "tidy-the-list")
    assert found.size_bytes == sum(p.stat().st_size for p in (SAMPLES / "tidy-the-list").rglob("*") if p.is_file())
    assert "Tidy the file" in found.instruction


def test_steps_have_their_own_instructions_tests_and_limits() -> None:
    found = READER.inspect(SAMPLES / "report-in-two-steps").task
    assert found is not None
    assert found.steps == ("count", "report")
    assert (found.agent_timeout_sec, found.verifier_timeout_sec) == (240, 120)
    assert "## Step 1: count" in found.instruction
    assert "## Step 2: report" in found.instruction


def test_needs_no_mapping(task: Path, tmp_path: Path) -> None:
    assert READER.prepare(task, tmp_path / "prepared") == task


def test_a_syntax_error_has_its_line(task: Path) -> None:
    line = add_line(task, "[agent]", "timeout_sec = = 3")
    found = only(task)
    assert (found.file, found.line, found.severity) == ("task.toml", line, Severity.ERROR)
    assert READER.inspect(task).task is None


@pytest.mark.parametrize(
    ("table", "text", "words", "fix"),
    [
        ("[environment]", 'gpus = "two"', "environment.gpus", "whole number"),
        ("[environment]", 'network_mode = "offline"', "environment.network_mode", "one of the values"),
        ("[environment]", "docker_image = 3", "environment.docker_image", "quotes"),
        ("[environment]", 'env = ["A=1"]', "environment.env", "table"),
        ("[verifier]", 'environment_mode = "apart"', "verifier.environment_mode", "one of the values"),
    ],
)
def test_an_invalid_value_has_its_line_and_a_fix(task: Path, table: str, text: str, words: str, fix: str) -> None:
    line = add_line(task, table, text)
    found = only(task)
    assert (found.file, found.line) == ("task.toml", line)
    assert words in found.message
    assert fix in found.fix


def test_all_problems_come_at_once(task: Path) -> None:
    """Of several files, not just the first one found."""
    add_line(task, "[environment]", 'gpus = "two"')
    add_line(task, "[agent]", 'user = ["x"]')
    (task / "elsewhere").symlink_to("/etc/passwd")
    files = {(found.file, found.line is not None) for found in problems(task)}
    assert files == {("task.toml", True), ("elsewhere", False)}
    assert len(problems(task)) >= 3
    (task / "task.toml").write_text((SAMPLES / "answer-file" / "task.toml").read_text())
    shutil.rmtree(task / "tests")
    shutil.rmtree(task / "environment")
    (task / "instruction.md").unlink()
    assert {found.file for found in problems(task)} == {"elsewhere", "tests/test.sh", "environment", "instruction.md"}


def test_an_unknown_field_is_a_warning_with_a_guess(task: Path) -> None:
    line = add_line(task, "[verifier]", "timout_sec = 3")
    found = only(task)
    assert (found.line, found.severity) == (line, Severity.WARNING)
    assert "timeout_sec" in found.fix
    inspected = READER.inspect(task).task
    assert inspected is not None
    assert inspected.warnings == (found,)


def test_a_field_of_a_step_has_the_line_of_that_step(tmp_path: Path) -> None:
    task = Path(shutil.copytree(SAMPLES / "report-in-two-steps", tmp_path / "steps"))
    text = (task / "task.toml").read_text()
    (task / "task.toml").write_text(text + 'user = ["nobody"]\n')
    found = problems(task)
    assert {problem.line for problem in found} == {len(text.splitlines()) + 1}
    assert "steps.1.verifier.user" in found[0].message


@pytest.mark.parametrize("missing", ["steps/report", "steps/report/instruction.md", "steps/report/tests/test.sh"])
def test_a_step_must_be_complete(missing: str, tmp_path: Path) -> None:
    task = Path(shutil.copytree(SAMPLES / "report-in-two-steps", tmp_path / "steps"))
    assert problems(task) == []
    gone = task / missing
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    assert only(task).file == missing


def test_deprecated_fields_are_taken_as_harbor_takes_them(task: Path) -> None:
    text = (task / "task.toml").read_text().replace("memory_mb = 512", 'memory = "2G"\nallow_internet = false')
    (task / "task.toml").write_text(text)
    inspection = READER.inspect(task)
    assert inspection.task is not None
    assert (inspection.task.resources.memory_mb, inspection.task.network_mode) == (2048, "no-network")
    assert [found.fix for found in inspection.problems] == ["Use memory_mb instead.", "Use network_mode instead."]
    assert all(found.severity is Severity.WARNING for found in inspection.problems)


def test_a_deprecated_field_must_not_contradict_its_successor(task: Path) -> None:
    line = add_line(task, "[environment]", 'memory = "2G"')
    error = next(found for found in problems(task) if found.severity is Severity.ERROR)
    assert (error.line, "contradicts" in error.message) == (line, True)


@pytest.mark.parametrize("file", ["task.toml", "instruction.md"])
def test_text_must_be_utf8(task: Path, file: str) -> None:
    (task / file).write_bytes((task / file).read_bytes() + b"\n# caf\xe9\n")
    found = only(task)
    assert (found.file, found.severity) == (file, Severity.ERROR)
    assert found.line is not None
    assert "UTF-8" in found.message


def test_windows_line_ends_in_the_test_are_a_warning(task: Path) -> None:
    script = task / "tests" / "test.sh"
    script.write_bytes(script.read_bytes().replace(b"\n", b"\r\n"))
    found = only(task)
    assert (found.file, found.line, found.severity) == ("tests/test.sh", 1, Severity.WARNING)


def test_a_test_that_never_writes_a_reward_is_a_warning(task: Path) -> None:
    (task / "tests" / "test.sh").write_text("#!/bin/sh\ntrue\n")
    assert "does not seem to write a reward" in only(task).message
    (task / "tests" / "check.py").write_text("open('/logs/verifier/reward.txt', 'w')")
    assert problems(task) == []


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", "data"])
def test_links_out_of_the_task_are_refused(task: Path, target: str) -> None:
    (task / "solution" / "data").symlink_to(target)
    assert only(task).file == "solution/data"
    (task / "solution" / "data").unlink()
    (task / "solution" / "data").symlink_to("solve.sh")
    assert problems(task) == []


def test_an_image_stands_for_a_dockerfile(task: Path) -> None:
    (task / "environment" / "Dockerfile").unlink()
    assert only(task).file == "environment"
    add_line(task, "[environment]", 'docker_image = "debian:bookworm-slim"')
    inspection = READER.inspect(task)
    assert inspection.task is not None
    assert inspection.task.docker_image == "debian:bookworm-slim"


def test_services_of_a_compose_file_are_named(task: Path) -> None:
    compose = task / "environment" / "docker-compose.yaml"
    compose.write_text("services:\n  main: {}\n  db:\n    image: postgres\n")
    inspected = READER.inspect(task).task
    assert inspected is not None
    assert inspected.services == ("db",)
    compose.write_text("services:\n  main: {}\n  db: [\n")
    found = only(task)
    assert (found.file, found.severity) == ("environment/docker-compose.yaml", Severity.ERROR)
    assert found.line is not None


def test_gpus_and_windows_are_valid_here(task: Path) -> None:
    add_line(task, "[environment]", "gpus = 2")
    add_line(task, "[environment]", 'os = "windows"')
    (task / "tests" / "test.bat").write_text("echo 1 > reward.txt")
    inspected = READER.inspect(task).task
    assert inspected is not None
    assert (inspected.os, inspected.resources.gpus, inspected.has_solution) == ("windows", 2, False)


def test_reading_a_task_does_not_import_litellm() -> None:
    program = (
        "import sys; from pathlib import Path; from seatrial.adapters.tasks_harbor import HarborTasks;"
        f"assert HarborTasks().inspect(Path({str(SAMPLES / 'answer-file')!r})).task;"
        "print(sorted(m for m in sys.modules if m == 'litellm' or m.startswith('harbor.') and 'models' not in m))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "litellm" not in answer
    assert "harbor.trial" not in answer


def test_missing_files_are_told_beside_a_broken_configuration(task: Path) -> None:
    (task / "task.toml").write_text("[environment\n")
    assert {problem.file for problem in problems(task)} == {"task.toml"}
    (task / "instruction.md").unlink()
    shutil.rmtree(task / "tests")
    (task / "environment" / "Dockerfile").unlink()
    assert {problem.file for problem in problems(task)} == {
        "task.toml",
        "instruction.md",
        "tests/test.sh",
        "environment",
    }
