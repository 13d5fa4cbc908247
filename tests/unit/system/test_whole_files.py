"""A small file is seen whole, also if two processes with the same number write it at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.system.whole_files import write_whole

WRITER = """
import sys
from pathlib import Path
from seatrial.system.whole_files import write_whole

print("ready", flush=True)
sys.stdin.readline()
for _ in range(500):
    write_whole(Path(sys.argv[1]), sys.argv[2] * 5000)
"""


def test_content_and_folder_are_there_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "new" / "file"
    write_whole(file, "text")
    write_whole(file, b"bytes")
    assert file.read_bytes() == b"bytes"
    assert [place.name for place in file.parent.iterdir()] == ["file"]
    assert file.stat().st_mode & 0o044, "others may read it, as any new file"


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        write_whole(tmp_path / "folder", "text")
    assert [place.name for place in tmp_path.iterdir()] == ["folder"]


def test_processes_with_the_same_number_do_not_disturb_each_other(tmp_path: Path) -> None:
    file = tmp_path / "file"
    writers = [
        subprocess.Popen(
            ["unshare", "--pid", "--fork", sys.executable, "-c", WRITER, str(file), letter],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for letter in "ab"
    ]
    for writer in writers:
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    seen = set()
    while any(writer.poll() is None for writer in writers):
        seen.add(file.read_text() if file.exists() else "")
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen <= {"", "a" * 5000, "b" * 5000}
    assert [place.name for place in tmp_path.iterdir()] == ["file"]
