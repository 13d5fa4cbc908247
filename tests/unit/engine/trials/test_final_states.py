"""Final states: found by trial and try, bounded, removed when not needed, and handed over only if they are ours."""

from __future__ import annotations

import io
import os
import tarfile
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from seatrial.adapters import final_state_archive
from seatrial.adapters.final_state_archive import unpack
from seatrial.adapters.seal_fernet import FernetSeal
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Trial
from seatrial.engine.trials.final_states import FinalStates
from seatrial.engine.trials.hand_over import HandOver
from seatrial.testing.memory_blobs import MemoryBlobs

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
GIGABYTE = 1 << 30


def a_trial(try_number: int, number: int = 7) -> Trial:
    task = TaskRef(name="hello", digest=f"sha256:{0:064x}")
    return Trial(
        id=number,
        job_id=1,
        task=task,
        agent_index=0,
        agent="a",
        model=None,
        attempt=1,
        try_number=try_number,
        created_at=NOW,
    )


def write_state(states: FinalStates, name: str, *, size: int = GIGABYTE) -> Path:
    folder = states.folder / name
    (folder / "files" / "agent").mkdir(parents=True)
    (folder / "agent.json").write_text('{"a": 1}')
    (folder / "files" / "agent" / "trajectory.json").write_text("[]")
    (folder / "files" / "agent" / "link").symlink_to("/etc/passwd")
    with (folder / "disk").open("wb") as disk:
        disk.truncate(size)
        os.pwrite(disk.fileno(), b"begin", 0)
        os.pwrite(disk.fileno(), b"middle", 700 << 20)
    return folder


def machine(folder: Path, blobs: MemoryBlobs, key: str = "our secret") -> HandOver:
    return HandOver(FinalStates(folder / "final", 4 * GIGABYTE), blobs, FernetSeal(folder, key), final_state_archive)


@pytest.fixture
def states(tmp_path: Path) -> FinalStates:
    return FinalStates(tmp_path / "final", limit_bytes=1 << 20)


async def test_the_newest_of_earlier_tries_is_found(states: FinalStates) -> None:
    assert await states.find(a_trial(3)) is None
    for name in ("7-1", "7-2", "7-10", "70-1", ".7-3"):
        write_state(states, name)
    assert await states.find(a_trial(1)) is None
    assert await states.find(a_trial(3)) == states.folder / "7-2"
    assert await states.current(a_trial(10)) == states.folder / "7-10"
    await states.forget(7)
    assert states.trials() == {70}


async def test_they_take_a_bounded_part_of_the_disk(states: FinalStates) -> None:
    assert await states.place(a_trial(1)) == states.folder / "7-1"
    (write_state(states, "8-1") / "more").write_bytes(os.urandom(2 << 20))
    full = FinalStates(states.folder, states.limit_bytes)
    assert await full.place(a_trial(1)) is None
    await full.sweep(wanted={7}, now=time.time())
    assert await FinalStates(states.folder, states.limit_bytes).place(a_trial(1)) is not None
    assert await FinalStates(states.folder, 0).place(a_trial(1)) is None


async def test_a_sweep_leaves_what_is_wanted_and_removes_what_is_old(states: FinalStates) -> None:
    for name in ("7-1", "8-1", "9-1", ".9-2", ".5-1"):
        write_state(states, name)
    for name in ("9-1", ".9-2"):
        os.utime(states.folder / name, (0, 0))
    assert await states.sweep({7, 9}, time.time()) == 3
    assert sorted(place.name for place in states.folder.iterdir()) == [".5-1", "7-1"]


async def test_a_state_comes_whole_to_another_machine(tmp_path: Path) -> None:
    blobs = MemoryBlobs()
    here, there = machine(tmp_path / "here", blobs), machine(tmp_path / "there", blobs)
    sent = write_state(here.states, "7-1")
    assert await here.send(a_trial(1))
    assert sum([blob.size async for blob in blobs.list("")]) < 1 << 20, "holes take nothing"
    plain = [await blobs.read(blob.key) async for blob in blobs.list("")]
    assert not any(mark in content for content in plain for mark in (b"trajectory", b"\x1f\x8b\x08")), "it is encrypted"
    got = await there.fetch(a_trial(2))
    assert got == there.states.folder / "7-1"
    assert (got / "agent.json").read_bytes() == (sent / "agent.json").read_bytes()
    assert (got / "disk").stat().st_size == GIGABYTE and (got / "disk").stat().st_blocks * 512 < 1 << 20
    with (got / "disk").open("rb") as disk:
        assert (os.pread(disk.fileno(), 5, 0), os.pread(disk.fileno(), 6, 700 << 20)) == (b"begin", b"middle")
    assert [place.name for place in (got / "files" / "agent").iterdir()] == ["trajectory.json"], "no link came along"
    assert [place.name for place in there.states.folder.iterdir()] == ["7-1"]
    await there.forget(a_trial(2))
    assert [blob async for blob in blobs.list("")] == []


async def test_without_a_state_nothing_is_sent_or_fetched(tmp_path: Path) -> None:
    here = machine(tmp_path / "here", MemoryBlobs())
    assert not await here.send(a_trial(1))
    assert await here.fetch(a_trial(1)) is None
    assert await here.fetch(a_trial(2)) is None


@pytest.mark.parametrize("what", ["another key", "another content", "another trial", "a later try", "no seal"])
async def test_what_this_installation_did_not_send_is_not_taken_up(tmp_path: Path, what: str) -> None:
    blobs = MemoryBlobs()
    here, there = machine(tmp_path / "here", blobs), machine(tmp_path / "there", blobs)
    write_state(here.states, "7-1")
    await here.send(a_trial(1))
    trial = a_trial(2)
    if what == "another key":
        there = machine(tmp_path / "there", blobs, "another secret")
    elif what == "another content":
        await blobs.put_bytes("trials/7/final/state", await blobs.read("trials/7/final/state") + b"x")
    elif what == "another trial":
        for name in ("state", "seal"):
            await blobs.put_bytes(f"trials/8/final/{name}", await blobs.read(f"trials/7/final/{name}"))
        trial = a_trial(2, number=8)
    elif what == "a later try":
        write_state(here.states, "7-2")
        await here.send(a_trial(2))
    else:
        await blobs.put_bytes("trials/7/final/seal", b"{}")
    assert await there.fetch(trial) is None
    left = list(there.states.folder.iterdir()) if there.states.folder.is_dir() else []
    assert left == []


def archive_with(place: Path, *members: tuple[str, bytes, bytes]) -> Path:
    with tarfile.open(place, "x:gz") as tar:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, len(content)
            member.linkname = "/etc" if kind != tarfile.REGTYPE else ""
            tar.addfile(member, io.BytesIO(content))
    return place


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("files/../../outside", tarfile.REGTYPE),
        ("/outside", tarfile.REGTYPE),
        ("outside", tarfile.REGTYPE),
        ("files/link", tarfile.SYMTYPE),
        ("files/hard", tarfile.LNKTYPE),
        ("files/device", tarfile.CHRTYPE),
        ("files/fifo", tarfile.FIFOTYPE),
        ("disk/-1", tarfile.REGTYPE),
        ("disk/1/../../../outside", tarfile.REGTYPE),
    ],
)
def test_hostile_members_write_nothing_outside(tmp_path: Path, name: str, kind: bytes) -> None:
    """Nobody but we can seal such an archive; it would not help to."""
    archive = archive_with(tmp_path / "a", (name, kind, b""))
    with pytest.raises((ValueError, OSError)):
        unpack(archive, tmp_path / "to" / "state", 1 << 20) if (tmp_path / "to").mkdir() is None else None
    assert sorted(place.name for place in tmp_path.rglob("*")) == ["a", "state", "to"]


def test_a_harmless_archive_is_unpacked_and_a_large_one_is_not(tmp_path: Path) -> None:
    members = (("agent.json", tarfile.REGTYPE, b"{}"), ("files/a/b", tarfile.REGTYPE, b"x" * 100))
    archive = archive_with(tmp_path / "a", *members)
    unpack(archive, tmp_path / "state", 1 << 20)
    assert (tmp_path / "state" / "files" / "a" / "b").read_bytes() == b"x" * 100
    with pytest.raises(ValueError, match="too many"):
        unpack(archive, tmp_path / "second", 50)
