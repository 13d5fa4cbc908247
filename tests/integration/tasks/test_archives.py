"""Packing and unpacking honest archives, and what happens to those that a bit has fallen out of."""

from __future__ import annotations

import shutil
import stat
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.adapters.archives import ArchiveFiles, pack, unpack
from seatrial.errors import Conflict, InvalidArchive, InvalidInput, NotFound
from seatrial.task_content.digest import content_digest
from tests.integration.tasks.archive_makers import LINK, Member, file, hard_link, link, tar_of, zip_of
from tests.properties import trying

SAMPLES = Path(__file__).parents[3] / "samples"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "a-task"
    (root / "tests").mkdir(parents=True)
    (root / "task.toml").write_text("")
    (root / "tests" / "test.sh").write_text("#!/bin/sh\n")
    (root / "tests" / "test.sh").chmod(0o755)
    (root / "Grüße.txt").write_text("é")
    (root / "link").symlink_to("tests/test.sh")
    (root / "empty").write_bytes(b"")
    return root


def test_packing_is_deterministic_and_keeps_the_digest(tree: Path, tmp_path: Path) -> None:
    first = pack(tree, tmp_path / "1.zip").read_bytes()
    shutil.copytree(tree, tmp_path / "elsewhere" / "a-task", symlinks=True)
    (tmp_path / "elsewhere" / "a-task" / "__pycache__").mkdir()
    second = pack(tmp_path / "elsewhere" / "a-task", tmp_path / "2.zip").read_bytes()
    assert first == second
    back = unpack(tmp_path / "1.zip", tmp_path / "back")
    assert content_digest(back / "a-task") == content_digest(tree)
    assert (back / "a-task" / "tests" / "test.sh").stat().st_mode & 0o777 == 0o755
    assert (back / "a-task" / "link").readlink() == Path("tests/test.sh")


@pytest.mark.parametrize("tool", [["tar", "-cf"], ["tar", "-czf"], ["tar", "--format=ustar", "-czf"]])
def test_reads_what_tar_writes(tool: list[str], tree: Path, tmp_path: Path) -> None:
    subprocess.run([*tool, str(tmp_path / "x"), "-C", str(tree), "."], check=True)
    assert content_digest(unpack(tmp_path / "x", tmp_path / "back")) == content_digest(tree)


def test_reads_a_zip_written_as_a_stream(tree: Path, tmp_path: Path) -> None:
    """Sizes then stand behind the data, as in what browsers and macOS write."""

    class Pipe:
        def __init__(self, path: Path) -> None:
            self.sink = path.open("wb")

        def write(self, data: bytes) -> int:
            return self.sink.write(data)

        def flush(self) -> None:
            self.sink.flush()

    pipe = Pipe(tmp_path / "x.zip")
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[arg-type]
        archive.write(tree / "Grüße.txt", "a/Grüße.txt")
    pipe.sink.close()
    assert (unpack(tmp_path / "x.zip", tmp_path / "back") / "a" / "Grüße.txt").read_text() == "é"


def test_zip64_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive, archive.open("a", "w", force_zip64=True) as member:
        member.write(b"content")
    assert (unpack(tmp_path / "x.zip", tmp_path / "back") / "a").read_bytes() == b"content"


def test_modes_are_reduced_and_hard_links_are_separate_files(tmp_path: Path) -> None:
    program, data = file("a")
    program.mode = 0o6777
    (tmp_path / "x").write_bytes(tar_of((program, data), hard_link("b", "a")))
    back = unpack(tmp_path / "x", tmp_path / "back")
    assert stat.S_IMODE((back / "a").stat().st_mode) == 0o755
    assert (back / "a").stat().st_nlink == 1
    assert (back / "b").read_bytes() == data


def test_an_existing_folder_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(zip_of([Member("a")]))
    (tmp_path / "taken").mkdir()
    unpack(tmp_path / "x", tmp_path / "taken")
    with pytest.raises(Conflict):
        unpack(tmp_path / "x", tmp_path / "taken")


def test_a_pipe_cannot_be_packed(tree: Path, tmp_path: Path) -> None:
    subprocess.run(["mkfifo", str(tree / "pipe")], check=True)
    with pytest.raises(InvalidInput, match="pipe"):
        pack(tree, tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()


GOOD = {
    "zip": zip_of([Member("d/a", b"x" * 300), Member("b"), Member("l", b"b", attributes=LINK)]),
    "tar": tar_of(file("d/a", b"x" * 300), file("b"), link("l", "b"), hard_link("h", "b"), zipped=False),
    "tar.gz": tar_of(file("d/a", b"x" * 300), file("b"), link("l", "b")),
}


@pytest.mark.parametrize("kind", GOOD)
@trying(150)
@given(data=st.data())
def test_a_damaged_archive_is_refused_or_harmless(kind: str, data: st.DataObject) -> None:
    """Whatever bytes change: ``InvalidArchive`` or a clean result, nothing else and nothing outside."""
    damaged = bytearray(GOOD[kind])
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        (home / "x").write_bytes(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))
        try:
            unpack(home / "x", home / "in" / "out")
        except InvalidArchive:
            assert [path.name for path in (home / "in").iterdir()] == [] if (home / "in").exists() else True
        assert {path.name for path in home.iterdir()} <= {"x", "in"}


class TestArchiveFiles:
    def test_a_folder_a_task_and_an_archive(self, tmp_path: Path) -> None:
        files = ArchiveFiles()
        with files.open(SAMPLES) as tasks:
            names = [task.name for task in tasks]
        assert names == sorted(names)
        assert len(names) >= 7
        with files.open(SAMPLES / "answer-file") as tasks:
            assert tasks == [SAMPLES / "answer-file"]
        files.pack(SAMPLES / "answer-file", tmp_path / "upload.zip")
        with files.open(tmp_path / "upload.zip") as tasks:
            assert [task.name for task in tasks] == ["answer-file"]
            kept = tasks[0]
        assert not kept.exists()

    def test_a_task_at_the_top_is_named_after_its_archive(self, tmp_path: Path) -> None:
        subprocess.run(
            ["tar", "-czf", str(tmp_path / "my-task.tar.gz"), "-C", str(SAMPLES / "mend-a-script"), "."], check=True
        )
        with ArchiveFiles().open(tmp_path / "my-task.tar.gz") as tasks:
            assert [task.name for task in tasks] == ["my-task"]

    def test_several_tasks_in_one_archive(self, tmp_path: Path) -> None:
        subprocess.run(["tar", "-czf", str(tmp_path / "all.tgz"), "-C", str(SAMPLES.parent), "samples"], check=True)
        with ArchiveFiles().open(tmp_path / "all.tgz") as tasks, ArchiveFiles().open(SAMPLES) as originals:
            assert [task.name for task in tasks] == [task.name for task in originals]

    def test_unpacks_its_own_archive_to_the_task_itself(self, tmp_path: Path) -> None:
        files = ArchiveFiles(limit_bytes=10)
        files.pack(SAMPLES / "answer-file", tmp_path / "x.zip")
        files.unpack(tmp_path / "x.zip", tmp_path / "home" / "renamed")
        assert content_digest(tmp_path / "home" / "renamed") == content_digest(SAMPLES / "answer-file")
        assert [path.name for path in (tmp_path / "home").iterdir()] == ["renamed"]

    def test_the_limit_holds_for_what_users_bring(self, tmp_path: Path) -> None:
        files = ArchiveFiles(limit_bytes=10)
        files.pack(SAMPLES / "answer-file", tmp_path / "x.zip")
        with pytest.raises(InvalidArchive, match="too large"), files.open(tmp_path / "x.zip"):
            pass

    def test_names_that_only_fit_this_system_survive_the_library(self, tree: Path, tmp_path: Path) -> None:
        (tree / "aux.c").write_text("")
        (tree / "AUX.c").write_text("")
        files = ArchiveFiles()
        files.pack(tree, tmp_path / "x.zip")
        files.unpack(tmp_path / "x.zip", tmp_path / "back")
        assert content_digest(tmp_path / "back") == content_digest(tree)

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(NotFound), ArchiveFiles().open(tmp_path / "nowhere"):
            pass
        with pytest.raises(InvalidInput, match="no task"), ArchiveFiles().open(tmp_path):
            pass


class TestDigest:
    def test_changes_with_everything_that_matters(self, tree: Path) -> None:
        seen = {content_digest(tree)}
        for change in (
            lambda: (tree / "empty").write_text("x"),
            lambda: (tree / "empty").chmod(0o755),
            lambda: (tree / "empty").rename(tree / "empty2"),
            lambda: ((tree / "link").unlink(), (tree / "link").symlink_to("task.toml")),
            lambda: (tree / "new").write_text(""),
        ):
            change()
            digest = content_digest(tree)
            assert digest not in seen
            seen.add(digest)

    def test_ignores_what_does_not(self, tree: Path) -> None:
        before = content_digest(tree)
        (tree / ".git").mkdir()
        (tree / ".git" / "HEAD").write_text("x")
        (tree / "tests" / "__pycache__").mkdir()
        (tree / "tests" / ".DS_Store").write_text("x")
        (tree / "nothing").mkdir()
        (tree / "empty").chmod(0o600)
        assert content_digest(tree) == before

    def test_a_name_cannot_imitate_a_content(self, tmp_path: Path) -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        for folder, name, content in ((one, "a", "bc"), (two, "ab", "c")):
            folder.mkdir()
            (folder / name).write_text(content)
        assert content_digest(one) != content_digest(two)
