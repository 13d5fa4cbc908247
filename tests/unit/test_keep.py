"""Files of an attempt are kept without secrets, without links, and with flat memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from seatrial.adapters.blobs_objects import ObjectBlobs
from seatrial.domain.result import Failure, Result
from seatrial.domain.trial import Outcome
from seatrial.engine.trials.save_files import keep_files, redact_result, redact_tree, regular_files

SECRET = b"sk-canary-0123456789"


def test_links_and_special_files_are_left_behind(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "log.txt").write_text("kept")
    (tmp_path / "agent" / "passwd").symlink_to("/etc/passwd")
    (tmp_path / "outside").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    assert list(regular_files(tmp_path)) == ["agent/log.txt"]


def test_names_that_are_not_printable_are_left_behind(tmp_path: Path) -> None:
    (tmp_path / "fine.txt").touch()
    (tmp_path / "bad\nname").touch()
    (tmp_path / "back\\slash").touch()
    assert list(regular_files(tmp_path)) == ["fine.txt"]


def test_a_secret_is_redacted_in_text_and_in_binary(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"key: " + SECRET + b"!")
    (tmp_path / "b.bin").write_bytes(b"\0\xff" + SECRET + b"\0")
    (tmp_path / "c.txt").write_bytes(b"nothing here")
    redact_tree(tmp_path, [SECRET])
    assert (tmp_path / "a.txt").read_bytes() == b"key: [REDACTED]!"
    assert (tmp_path / "b.bin").read_bytes() == b"\0\xff[REDACTED]\0"
    assert (tmp_path / "c.txt").read_bytes() == b"nothing here"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.bin", "c.txt"]


def test_redacting_writes_over_no_other_file_and_through_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("not theirs")
    root = tmp_path / "root"
    root.mkdir()
    for name in ("a.txt", "b.txt"):
        (root / name).write_bytes(SECRET)
    (root / "a.txt.redacted").write_text("a file of the agent's own")
    (root / "b.txt.redacted").symlink_to(outside)
    redact_tree(root, [SECRET])
    assert (root / "a.txt").read_text() == (root / "b.txt").read_text() == "[REDACTED]"
    assert (root / "a.txt.redacted").read_text() == "a file of the agent's own"
    assert outside.read_text() == "not theirs"
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "a.txt.redacted", "b.txt", "b.txt.redacted"]


def test_a_secret_is_redacted_in_names(tmp_path: Path) -> None:
    folder = tmp_path / f"of {SECRET.decode()}"
    folder.mkdir()
    (folder / f"{SECRET.decode()}.txt").write_bytes(SECRET)
    (folder / "[REDACTED].txt").write_text("was there before")
    (folder / "plain.txt").write_text("plain")
    redact_tree(tmp_path, [SECRET])
    kept = list(regular_files(tmp_path))
    assert kept == [f"of [REDACTED]/{name}" for name in ("[REDACTED].txt", "[REDACTED].txt~", "plain.txt")]
    assert (tmp_path / kept[1]).read_text() == "[REDACTED]"


def test_a_secret_is_redacted_in_a_result_however_it_is_written() -> None:
    odd = 'sk-"quoted"\\ü'
    failure = Failure(type="RuntimeError", message=f"{odd}!", traceback="")
    result = Result(outcome=Outcome.ERROR, message=f"told {SECRET.decode()} and {odd}", failure=failure)
    clean = redact_result(result, [SECRET.decode(), odd, "told"])
    assert clean.message == "told [REDACTED] and [REDACTED]", "what is too short to be a key stays"
    assert clean.failure is not None and clean.failure.message == "[REDACTED]!"
    assert redact_result(result, ["sk-another-key"]) is result


@given(before=st.integers(0, 64), after=st.integers(0, 64), chunk=st.integers(1, 40))
def test_a_secret_across_pieces_is_found(before: int, after: int, chunk: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x")
        file.write_bytes(b"a" * before + SECRET + b"b" * after)
        redact_tree(Path(folder), [SECRET], chunk)
        assert file.read_bytes() == b"a" * before + b"[REDACTED]" + b"b" * after


async def test_what_is_not_kept_does_not_come_along(tmp_path: Path) -> None:
    root = tmp_path / "attempt"
    (root / "agent").mkdir(parents=True)
    (root / "agent" / "log.txt").write_text("kept")
    (root / "agent" / "passwd").symlink_to("/etc/passwd")
    (root / "etc").symlink_to("/etc")
    os.mkfifo(root / "pipe")
    blobs = ObjectBlobs.in_directory(tmp_path / "blobs")
    assert [file.path for file in await keep_files(blobs, "trials/1/1", root, ())] == ["agent/log.txt"]
    left = [path.relative_to(tmp_path / "blobs").as_posix() for path in (tmp_path / "blobs").rglob("*")]
    assert sorted(left) == ["trials", "trials/1", "trials/1/1", "trials/1/1/agent", "trials/1/1/agent/log.txt"]
    assert Path("/etc/passwd").exists()
