"""Where tasks for rollouts come from: folders, archives whose digest is checked, datasets; and which are taken."""

from __future__ import annotations

import asyncio
import hashlib
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.domain.task import Dataset, TaskRef, TaskSelection
from seatrial.errors import InvalidArchive, InvalidInput, NotFound
from seatrial.rollouts.tasks import FoundTasks, TaskFinder
from seatrial.settings import Settings
from seatrial.wiring import open_installation
from tests.command_line import SAMPLES
from tests.verifiers.tasks import ANSWERED, TEN, SmallTask, write_ten

ALL = TaskSelection()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", cache=tmp_path / "cache")


@pytest.fixture
def finder(settings: Settings) -> TaskFinder:
    return TaskFinder(settings)


def names(found: FoundTasks) -> list[str]:
    return [task.task.name for task in found.tasks]


def test_both_formats_of_a_folder_become_directories_that_harbor_runs(finder: TaskFinder, tmp_path: Path) -> None:
    found = finder.in_place(write_ten(tmp_path / "ten"), ALL)
    assert names(found) == [task.name for task in TEN]
    assert all((task.directory / "task.toml").is_file() for task in found.tasks)
    assert not list((tmp_path / "ten").rglob(".*")), "nothing is written beside the tasks"


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (TaskSelection(limit=2), ["a-answer", "b-wrong-answer"]),
        (TaskSelection(include=("*-visit*",), exclude=("*-old",)), ["e-one-visit", "f-two-visits"]),
        (TaskSelection(categories=("old",), limit=1), ["c-answer-old"]),
        (TaskSelection(difficulties=("medium",), include=("g-*",)), ["g-one-visit-old"]),
    ],
)
def test_tasks_are_chosen_by_name_category_and_difficulty(
    finder: TaskFinder, tmp_path: Path, selection: TaskSelection, expected: list[str]
) -> None:
    assert names(finder.in_place(write_ten(tmp_path / "ten"), selection)) == expected


def test_what_cannot_be_rolled_out_is_left_out_and_named(finder: TaskFinder, caplog: pytest.LogCaptureFixture) -> None:
    found = finder.in_place(SAMPLES, ALL)
    assert "answer-file" in names(found)
    assert [left.name for left in found.left_out] == ["report-in-two-steps"]
    assert "several steps" in caplog.text
    with pytest.raises(InvalidInput, match="several steps"):
        finder.in_place(SAMPLES / "report-in-two-steps", ALL)


def test_nothing_there_and_nothing_chosen_are_said(finder: TaskFinder, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        finder.in_place(tmp_path / "nowhere", ALL)
    with pytest.raises(InvalidInput, match="No task"):
        finder.in_place(write_ten(tmp_path / "ten"), TaskSelection(include=("zzz",)))


def packed(task: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".zip":
        with zipfile.ZipFile(target, "w") as archive:
            for path in sorted(path for path in task.rglob("*") if path.is_file()):
                archive.write(path, f"{task.name}/{path.relative_to(task)}")
    else:
        with tarfile.open(target, "w:gz") as archive:
            archive.add(task, task.name)
    return target


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    """A folder with one task as a tarball and one as a ZIP file."""
    ten = write_ten(tmp_path / "ten")
    packed(ten / "c-answer-old", tmp_path / "archives" / "c-answer-old.tar.gz")
    packed(ten / "a-answer", tmp_path / "archives" / "a-answer.zip")
    return tmp_path / "archives"


def test_archives_in_a_folder_and_alone(finder: TaskFinder, archives: Path) -> None:
    assert names(finder.in_place(archives, ALL)) == ["a-answer", "c-answer-old"]
    assert names(finder.in_place(archives / "a-answer.zip", ALL)) == ["a-answer"]
    SmallTask("beside", (), ANSWERED, 1.0).write(archives)
    assert names(finder.in_place(archives, ALL)) == ["a-answer", "beside", "c-answer-old"]


def _beside(archive: Path, digest: str) -> None:
    archive.with_name(f"{archive.name}.sha256").write_text(f"{digest}  {archive.name}\n")


def _listed(archive: Path, digest: str) -> None:
    archive.with_name("SHA256SUMS").write_text(f"{'0' * 64}  other.tar.gz\n{digest} *{archive.name}\n")


def _manifest(archive: Path, digest: str) -> None:
    archive.with_name("manifest.json").write_text(json.dumps({"tasks": [{"name": archive.name, "sha256": digest}]}))


def _mapping(archive: Path, digest: str) -> None:
    archive.with_name("manifest.json").write_text(json.dumps({"files": {archive.name: f"sha256:{digest}"}}))


@pytest.mark.parametrize("write_down", [_beside, _listed, _manifest, _mapping])
def test_a_digest_that_was_written_down_must_be_the_archives(
    finder: TaskFinder, archives: Path, write_down: Callable[[Path, str], None]
) -> None:
    archive = archives / "c-answer-old.tar.gz"
    write_down(archive, hashlib.sha256(archive.read_bytes()).hexdigest())
    assert "c-answer-old" in names(finder.in_place(archives, ALL))
    write_down(archive, "1" * 64)
    with pytest.raises(InvalidArchive, match="its SHA-256 is"):
        finder.in_place(archives, ALL)


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_tarball_is_refused_even_without_a_digest(finder: TaskFinder, archives: Path, damage: str) -> None:
    archive = archives / "c-answer-old.tar.gz"
    whole = archive.read_bytes()
    assert names(finder.in_place(archive, ALL)) == ["c-answer-old"]
    archive.write_bytes(whole[:-6] if damage == "cut" else whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:])
    with pytest.raises(InvalidArchive):
        finder.in_place(archive, ALL)


async def test_a_registered_dataset(finder: TaskFinder, settings: Settings, tmp_path: Path) -> None:
    async with open_installation(settings) as installation:
        tasks = await installation.library.add(write_ten(tmp_path / "ten"))
        refs = tuple(TaskRef(name=task.name, digest=task.digest) for task in tasks[:4])
        await installation.store.tasks.save_dataset(Dataset(name="four", version="2", tasks=refs), installation.clock())
    found = await asyncio.to_thread(finder.dataset, "four@2", TaskSelection(categories=("old",)))
    assert names(found) == ["c-answer-old", "d-wrong-answer-old"]
    assert all((task.directory / "task.toml").is_file() for task in found.tasks)
    with pytest.raises(NotFound):
        await asyncio.to_thread(finder.dataset, "five", ALL)
