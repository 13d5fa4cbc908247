"""Small decisions about files of sandboxes: links, records, sizes, disk watching."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seatrial.sandboxes.host.storage import StorageWatch, TreeMeter
from seatrial.sandboxes.host.tree_copy import leads_out
from seatrial.sandboxes.host.tree_size import measure
from seatrial.sandboxes.options import Owner
from seatrial.sandboxes.record import SandboxRecord, remove_recorded
from tests.waiting import eventually


@pytest.mark.parametrize(
    ("destination", "place", "out"),
    [
        ("file", "link", False),
        ("../file", "a/link", False),
        ("../../b/file", "a/c/link", False),
        ("/etc/passwd", "a/link", True),
        ("..", "link", True),
        ("../x", "link", True),
        ("../../x", "a/link", True),
        ("inner/../../../x", "a/b/link", True),
        ("inner/..", "link", True),
    ],
)
def test_links_that_lead_out(destination: str, place: str, out: bool) -> None:
    assert leads_out(destination, place) is out


def test_record_comes_back_and_strangers_have_none(tmp_path: Path) -> None:
    record = SandboxRecord.new("st-1", Owner(install="here", trial=3, try_number=2))
    record.write(tmp_path)
    assert SandboxRecord.read(tmp_path) == record and record.process.lives
    (tmp_path / "other").mkdir()
    assert SandboxRecord.read(tmp_path / "other") is None
    (tmp_path / "other" / "sandbox.json").write_text("{}")
    assert SandboxRecord.read(tmp_path / "other") is None


def test_record_goes_last(tmp_path: Path) -> None:
    home = tmp_path / "st-1"
    (home / "changes").mkdir(parents=True)
    (home / "changes" / "file").write_text("x")
    SandboxRecord.new("st-1", Owner()).write(home)
    assert remove_recorded(home) == "" and not home.exists() and remove_recorded(home) == ""


def test_size_counts_blocks_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    before = measure(tmp_path).size
    (tmp_path / "deep" / "data").write_bytes(os.urandom(100_000))
    (tmp_path / "out").symlink_to("/usr")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    assert 100_000 <= measure(tmp_path).size - before < 200_000


async def test_watch_tells_who_uses_too_much(tmp_path: Path) -> None:
    told: list[tuple[str, bool]] = []
    watch = StorageWatch(tmp_path, interval_sec=0.02, growth=0, reserve=0)
    for name in ("greedy", "modest"):
        (tmp_path / name).mkdir()
        meter = TreeMeter((tmp_path / name,), list, 1 << 20)
        watch.add(name, meter, 1 << 20, lambda size, danger, name=name: told.append((name, danger)))  # type: ignore[misc]
    (tmp_path / "modest" / "data").write_bytes(b"x" * 500_000)
    (tmp_path / "data").write_bytes(b"x" * 1_300_000)
    (tmp_path / "data").rename(tmp_path / "greedy" / "data")
    await eventually(lambda: told, "a sandbox over its limit")
    assert told == [("greedy", False)]
    (tmp_path / "more").write_bytes(b"x" * 2_000_000)
    (tmp_path / "more").rename(tmp_path / "greedy" / "more")
    await eventually(lambda: len(told) > 1, "a sandbox far over its limit")
    assert told[1] == ("greedy", True)
    watch.remove("greedy")
    watch.remove("modest")
    await eventually(lambda: all(task.done() for task in watch._tasks.values()), "the end of watching")
