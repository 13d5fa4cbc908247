"""What the library relies on, asked of the reader of each task format."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from seatrial.adapters.tasks_harbor import HarborTasks
from seatrial.adapters.tasks_terminalbench1 import TerminalBench1Tasks
from seatrial.domain.task import Severity, TaskFormat
from seatrial.ports.tasks import TaskReader
from seatrial.task_content.digest import content_digest
from tests.command_line import SAMPLES


@dataclass(frozen=True)
class Kind:
    reader: TaskReader
    sample: str
    foreign: str
    """A sample of the other format."""
    description: str
    """The file that describes the task."""
    script: str
    """A file of the task that may be changed."""


KINDS = {
    TaskFormat.HARBOR: Kind(HarborTasks(), "answer-file", "mend-a-script", "task.toml", "solution/solve.sh"),
    TaskFormat.TERMINAL_BENCH_1: Kind(
        TerminalBench1Tasks(), "mend-a-script", "answer-file", "task.yaml", "solution.sh"
    ),
}


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture
def task(kind: Kind, tmp_path: Path) -> Path:
    """A valid task that a test may spoil."""
    return Path(shutil.copytree(SAMPLES / kind.sample, tmp_path / kind.sample))


def content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_it_recognises_its_own_format_alone(kind: Kind, task: Path, tmp_path: Path) -> None:
    assert kind.reader.recognises(task)
    assert not kind.reader.recognises(SAMPLES / kind.foreign)
    assert not kind.reader.recognises(tmp_path)
    assert not kind.reader.recognises(tmp_path / "missing")


def test_a_good_task_is_read_and_left_as_it_was(kind: Kind, task: Path) -> None:
    before = content(task)
    inspection = kind.reader.inspect(task)
    assert inspection.task is not None and not inspection.problems
    assert (inspection.task.format, inspection.task.digest) == (kind.reader.format, content_digest(task))
    assert inspection.task.name == inspection.name == kind.sample
    assert inspection.task.instruction and inspection.task.has_solution
    assert content(task) == before


def test_the_same_content_elsewhere_is_the_same_task_and_other_content_another(kind: Kind, task: Path) -> None:
    twin = Path(shutil.copytree(task, task.parent / "deeper" / task.name))
    first, second = kind.reader.inspect(task).task, kind.reader.inspect(twin).task
    assert first == second and first is not None
    with (twin / kind.script).open("a") as script:
        script.write("# changed\n")
    changed = kind.reader.inspect(twin).task
    assert changed is not None and changed.digest != first.digest


@pytest.mark.parametrize("broken", [b"\xff\xfe\x00", b": [", b"[[["])
def test_a_broken_description_is_a_problem_of_that_file_and_never_an_exception(
    kind: Kind, task: Path, broken: bytes
) -> None:
    (task / kind.description).write_bytes(broken)
    inspection = kind.reader.inspect(task)
    assert inspection.task is None
    errors = [problem for problem in inspection.problems if problem.severity is Severity.ERROR]
    assert any(problem.file == kind.description for problem in errors)
    assert all(problem.message for problem in errors)


def test_a_link_out_of_the_task_is_a_problem_and_is_not_followed(kind: Kind, task: Path) -> None:
    outside = task.parent / "outside.txt"
    outside.write_text("not of this task")
    (task / "tests" / "link").symlink_to(outside)
    inspection = kind.reader.inspect(task)
    assert inspection.task is None
    assert any(problem.file.endswith("link") for problem in inspection.problems)


def test_what_is_neither_a_file_nor_a_link_is_a_problem(kind: Kind, task: Path) -> None:
    os.mkfifo(task / "tests" / "pipe")
    assert kind.reader.inspect(task).task is None


def test_what_it_prepares_is_a_harbor_task_and_the_same_every_time(kind: Kind, task: Path) -> None:
    before = content(task)
    first = kind.reader.prepare(task, task.parent / "one" / task.name)
    second = kind.reader.prepare(task, task.parent / "two" / task.name)
    assert content(first) == content(second)
    prepared = HarborTasks().inspect(first)
    assert prepared.task is not None, prepared.problems
    original = kind.reader.inspect(task).task
    assert original is not None
    assert prepared.task.instruction.strip() == original.instruction.strip()
    assert prepared.task.agent_timeout_sec == original.agent_timeout_sec
    assert content(task) == before
