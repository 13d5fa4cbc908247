"""Room on the disk: told before anything is begun."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import StorageFull
from seatrial.system.disk import Disk


def test_where_there_is_room_nothing_is_said(tmp_path: Path) -> None:
    disk = Disk(tmp_path, low_water_mb=0)
    assert disk.free_bytes > 0
    assert disk.shortage() == ""
    disk.require(1)


def test_below_the_mark_it_says_how_much_is_left(tmp_path: Path) -> None:
    disk = Disk(tmp_path, low_water_mb=1 << 40)
    assert str(tmp_path) in disk.shortage()
    with pytest.raises(StorageFull, match="MB left"):
        disk.require()


def test_what_is_about_to_come_counts(tmp_path: Path) -> None:
    disk = Disk(tmp_path, low_water_mb=0)
    assert disk.shortage(disk.free_bytes + (1 << 40))


def test_a_folder_that_is_gone_has_no_room(tmp_path: Path) -> None:
    assert Disk(tmp_path / "gone", low_water_mb=1).shortage()
