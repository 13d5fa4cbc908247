"""What only real files can show: flat memory, a full disk, nothing outside the directory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.adapters.blobs_files import FileBlobs
from seatrial.errors import InvalidInput, StoreUnavailable
from seatrial.settings import Settings
from seatrial.wiring.installation import blobs_of

MEBI = 1 << 20

COPY = """
import asyncio, resource, sys
from pathlib import Path
from seatrial.adapters.blobs_files import FileBlobs

def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

async def main(blobs, small, large):
    await blobs.put_file("small", small)
    before = peak()
    await blobs.put_file("large", large)
    async for piece in blobs.stream("large"):
        pass
    print(peak() - before)

asyncio.run(main(FileBlobs.in_directory(Path(sys.argv[1])), Path(sys.argv[2]), Path(sys.argv[3])))
"""


def test_memory_stays_flat_whatever_the_size(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"x")
    with large.open("wb") as sink:
        for _ in range(256):
            sink.write(os.urandom(MEBI))
    command = [sys.executable, "-c", COPY, str(tmp_path / "blobs"), str(small), str(large)]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert grown <= 64
    assert (tmp_path / "blobs" / "large").stat().st_size == 256 * MEBI


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.sandbox
async def test_a_full_disk_leaves_no_piece_and_later_writes_work(small_disk: Path, tmp_path: Path) -> None:
    blobs = FileBlobs.in_directory(small_disk / "blobs")
    await blobs.put_bytes("k/kept", b"kept")
    for size in (16 * MEBI, 5 * MEBI):
        (tmp_path / "source").write_bytes(b"x" * size)
        with pytest.raises(StoreUnavailable, match="no room left"):
            await blobs.put_file("k/large", tmp_path / "source")
    with pytest.raises(StoreUnavailable, match="no room left"):
        await blobs.put_bytes("k/kept", b"x" * 5 * MEBI)
    assert [path.name for path in small_disk.rglob("*") if path.is_file()] == ["kept"]
    assert await blobs.read("k/kept") == b"kept"
    (tmp_path / "source").write_bytes(b"x" * MEBI)
    assert await blobs.put_file("k/large", tmp_path / "source") == MEBI


def test_places_by_url(tmp_path: Path) -> None:
    assert isinstance(blobs_of(Settings(home=tmp_path, blobs_url=f"file://{tmp_path}/there")), FileBlobs)
    assert (tmp_path / "there").is_dir()
    with pytest.raises(InvalidInput, match="nonsense"):
        blobs_of(Settings(home=tmp_path, blobs_url="nonsense://somewhere"))


async def test_deleting_leaves_no_empty_folders(tmp_path: Path) -> None:
    blobs = FileBlobs.in_directory(tmp_path / "blobs")
    await blobs.put_bytes("trials/1/1/logs/deep", b"x")
    await blobs.put_bytes("trials/2/1/log", b"x")
    assert await blobs.delete("trials/1") == 1
    assert [path.name for path in (tmp_path / "blobs" / "trials").iterdir()] == ["2"]
