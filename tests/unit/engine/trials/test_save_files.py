"""Files of an attempt are kept without secrets, without links, and with flat memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.adapters.blobs_files import FileBlobs
from seatrial.domain.result import Failure, Result
from seatrial.domain.trial import Outcome
from seatrial.engine.trials.found_files import LeftOut, SaveLimits, find_files, regular_files
from seatrial.engine.trials.recordable import recordable
from seatrial.engine.trials.redaction import FileRedaction
from seatrial.engine.trials.save_files import FileSaver, SavedFiles

SECRET = b"sk-canary-0123456789"


async def save(root: Path, *secrets: str, limits: SaveLimits | None = None) -> tuple[SavedFiles, FileBlobs]:
    blobs = FileBlobs.in_directory(root.with_name(root.name + "-blobs"))
    return await FileSaver(blobs, limits).save("trials/1/1", root, secrets), blobs


def paths(kept: SavedFiles) -> list[str]:
    return [file.path for file in kept.files]


def reasons(kept: SavedFiles) -> dict[str, str]:
    return {file.path: file.reason for file in kept.left_out.examples} if kept.left_out else {}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "attempt").mkdir()
    return tmp_path / "attempt"


def test_links_and_special_files_are_left_behind_and_said(root: Path) -> None:
    (root / "agent").mkdir()
    (root / "agent" / "log.txt").write_text("kept")
    (root / "agent" / "passwd").symlink_to("/etc/passwd")
    (root / "outside").symlink_to("/etc")
    os.mkfifo(root / "pipe")
    left_out = LeftOut()
    assert [found.path for found in find_files(root, SaveLimits(), left_out)] == ["agent/log.txt"]
    told = left_out.summary()
    assert told is not None and told.count == 3
    assert {file.path for file in told.examples} == {"agent/passwd", "outside", "pipe"}


def test_a_tasks_names_that_are_not_printable_are_left_behind(root: Path) -> None:
    (root / "fine.txt").touch()
    (root / "bad\nname").touch()
    (root / "back\\slash").touch()
    assert list(regular_files(root)) == ["fine.txt"]


async def test_a_secret_is_redacted_in_text_and_in_binary(root: Path) -> None:
    (root / "a.txt").write_bytes(b"key: " + SECRET + b"!")
    (root / "b.bin").write_bytes(b"\0\xff" + SECRET + b"\0")
    (root / "c.txt").write_bytes(b"nothing here")
    kept, blobs = await save(root, SECRET.decode())
    assert paths(kept) == ["a.txt", "b.bin", "c.txt"] and kept.left_out is None
    contents = [await blobs.read(f"trials/1/1/{name}") for name in paths(kept)]
    assert contents == [b"key: [REDACTED]!", b"\0\xff[REDACTED]\0", b"nothing here"]
    assert [file.size for file in kept.files] == [len(content) for content in contents]


async def test_redacting_writes_over_no_other_file_and_through_no_link(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("not theirs")
    for folder in ("a", "b"):
        (root / folder).mkdir()
        (root / folder / "x.txt").write_bytes(SECRET)
    (root / "a" / "redacted~").write_text("a file of the agent's own")
    (root / "b" / "redacted~").symlink_to(outside)
    kept, blobs = await save(root, SECRET.decode())
    assert paths(kept) == ["a/redacted~", "a/x.txt", "b/x.txt"] and reasons(kept) == {"b/redacted~": "It is a link."}
    assert await blobs.read("trials/1/1/a/x.txt") == await blobs.read("trials/1/1/b/x.txt") == b"[REDACTED]"
    assert await blobs.read("trials/1/1/a/redacted~") == b"a file of the agent's own"
    assert outside.read_text() == "not theirs"


async def test_a_secret_is_redacted_in_names(root: Path) -> None:
    folder = root / f"of {SECRET.decode()}"
    folder.mkdir()
    (folder / f"{SECRET.decode()}.txt").write_bytes(SECRET)
    (folder / "[REDACTED].txt").write_text("was there before")
    (folder / "plain.txt").write_text("plain")
    kept, blobs = await save(root, SECRET.decode())
    assert len(set(paths(kept))) == 3 and all(path.startswith("of [REDACTED]/") for path in paths(kept))
    contents = {await blobs.read(f"trials/1/1/{file.key or file.path}") for file in kept.files}
    assert contents == {b"[REDACTED]", b"was there before", b"plain"}
    assert not [blob.key async for blob in blobs.list("") if SECRET.decode() in blob.key]


async def test_a_secret_is_redacted_in_names_of_what_is_left_out(root: Path) -> None:
    (root / SECRET.decode()).symlink_to("/etc/passwd")
    kept, _ = await save(root, SECRET.decode())
    assert reasons(kept) == {"[REDACTED]": "It is a link."}


def test_a_secret_is_redacted_in_a_result_however_it_is_written() -> None:
    odd = 'sk-"quoted"\\ü'
    failure = Failure(type="RuntimeError", message=f"{odd}!", traceback="")
    result = Result(outcome=Outcome.ERROR, message=f"told {SECRET.decode()} and {odd}", failure=failure)
    clean = recordable(result, [SECRET.decode(), odd, "told"])
    assert clean.message == "told [REDACTED] and [REDACTED]", "what is too short to be a key stays"
    assert clean.failure is not None and clean.failure.message == "[REDACTED]!"
    assert recordable(result, ["sk-another-key"]) is result


@given(before=st.integers(0, 64), after=st.integers(0, 64), chunk=st.integers(1, 40))
def test_a_secret_across_pieces_is_found(before: int, after: int, chunk: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x")
        file.write_bytes(b"a" * before + SECRET + b"b" * after)
        FileRedaction([SECRET.decode()], chunk).clean(file)
        assert file.read_bytes() == b"a" * before + b"[REDACTED]" + b"b" * after


@given(holes=st.lists(st.integers(0, 3), max_size=4), chunk=st.integers(10, 9000))
def test_a_file_with_holes_keeps_them_and_loses_the_secret(holes: list[int], chunk: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x")
        with file.open("wb") as sink:
            for hole in holes:
                sink.seek(hole * 8192, os.SEEK_CUR)
                sink.write(b"<" + SECRET + b">")
            sink.truncate(sink.tell() + 8192)
        expected = file.read_bytes().replace(SECRET, b"[REDACTED]")
        assert FileRedaction([SECRET.decode()], chunk).clean(file) == len(expected)
        assert file.read_bytes() == expected


async def test_what_is_not_kept_does_not_come_along(root: Path) -> None:
    (root / "agent").mkdir(parents=True)
    (root / "agent" / "log.txt").write_text("kept")
    (root / "agent" / "passwd").symlink_to("/etc/passwd")
    (root / "etc").symlink_to("/etc")
    os.mkfifo(root / "pipe")
    kept, _ = await save(root)
    assert paths(kept) == ["agent/log.txt"]
    place = root.with_name("attempt-blobs")
    left = [path.relative_to(place).as_posix() for path in place.rglob("*")]
    assert sorted(left) == ["trials", "trials/1", "trials/1/1", "trials/1/1/agent", "trials/1/1/agent/log.txt"]
    assert Path("/etc/passwd").exists()


async def test_where_all_is_kept_the_directory_itself_is_moved(root: Path) -> None:
    (root / "agent").mkdir()
    (root / "agent" / "log.txt").write_text("kept")
    kept, _ = await save(root, SECRET.decode())
    assert paths(kept) == ["agent/log.txt"] and kept.files[0].key == "" and not root.exists()
