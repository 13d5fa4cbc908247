"""Trees deeper than recursion goes, written by the author of a task: refused or taken, and removed completely."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.adapters.archives import ArchiveFiles
from seatrial.errors import SeatrialError
from seatrial.system.removal import remove_tree, scratch_directory
from seatrial.task_content.tree import walk

DEEP = 1500
TASK = 'schema_version = "1.4"\n'


def _archive(place: Path, depth: int, tasks: int = 1) -> Path:
    with zipfile.ZipFile(place, "w") as archive:
        for number in range(tasks):
            archive.writestr(f"task{number}/task.toml", TASK)
            archive.writestr(f"task{number}/{'d/' * depth}file", "deep")
    return place


@pytest.fixture(autouse=True)
def emptied(tmp_path: Path) -> Iterator[None]:
    """Leaves nothing, also after a failure: pytest's own removal calls itself and fails on such trees."""
    yield
    for path in tmp_path.iterdir():
        remove_tree(path)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made."""
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return place


def test_deep_upload_is_refused_without_a_trace(tmp_path: Path, scratch: Path) -> None:
    archive = _archive(tmp_path / "deep.zip", DEEP)
    with pytest.raises(SeatrialError), ArchiveFiles().open(archive):
        pass
    assert list(scratch.iterdir()) == []


def test_shallow_upload_is_taken(tmp_path: Path, scratch: Path) -> None:
    with ArchiveFiles().open(_archive(tmp_path / "shallow.zip", 20)) as tasks:
        assert [task.name for task in tasks] == ["task0"]
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("tasks", [1, 2])
def test_deep_archive_of_our_own(tmp_path: Path, tasks: int) -> None:
    """The library unpacks these whatever their depth; two tasks are one too many, so the second is removed again."""
    archive, library = _archive(tmp_path / "deep.zip", DEEP, tasks), tmp_path / "library"
    try:
        ArchiveFiles().unpack(archive, library / "task0")
        assert tasks == 1
        assert (library / "task0" / ("d/" * DEEP) / "file").read_text() == "deep"
    except SeatrialError:
        assert tasks == 2
    assert [path.name for path in library.iterdir()] == ["task0"] * (2 - tasks)
    assert remove_tree(library) == ""


def test_deep_tree_is_walked(tmp_path: Path) -> None:
    deepest = tmp_path / "top"
    deepest.mkdir()
    for _ in range(DEEP):
        deepest /= "d"
        deepest.mkdir()
    (deepest / "file").write_text("deep")
    assert [entry.path for entry in walk(tmp_path)] == [f"top/{'d/' * DEEP}file"]
    assert remove_tree(tmp_path / "top") == ""


def test_scratch_directory_takes_any_tree(tmp_path: Path) -> None:
    with scratch_directory("deep-", tmp_path) as scratch:
        deepest = scratch
        for _ in range(DEEP):
            deepest /= "d"
            deepest.mkdir()
        assert scratch.parent == tmp_path and scratch.name.startswith("deep-")
    assert list(tmp_path.iterdir()) == []


def test_scratch_directory_is_removed_after_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ours"), scratch_directory("x-", tmp_path) as scratch:
        (scratch / "file").write_text("text")
        raise ValueError("ours")
    assert list(tmp_path.iterdir()) == []
