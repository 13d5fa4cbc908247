"""Tasks that workers share through object storage: each machine fetches a task once, and runs only that task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from seatrial.adapters.archives import ArchiveFiles
from seatrial.adapters.blobs_objects import ObjectBlobs
from seatrial.adapters.tasks_harbor import HarborTasks
from seatrial.engine.clock import system_clock
from seatrial.engine.tasks.library import TaskLibrary
from seatrial.engine.tasks.unpacked import archive_key
from seatrial.errors import SeatrialError, SetupProblem
from seatrial.ports.blobs import Blobs
from seatrial.settings import Settings
from seatrial.task_content.pack import pack
from seatrial.testing.memory_blobs import MemoryBlobs
from seatrial.testing.memory_store import MemoryStore
from seatrial.wiring import Installation, open_installation
from tests.s3_front import Front, s3_front
from tests.s3_server import new_bucket, s3_access, s3_server
from tests.task_files import write_task

HOSTILE = "#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n"


def library(store: MemoryStore, blobs: Blobs, machine: Path) -> TaskLibrary:
    return TaskLibrary(store.tasks, blobs, (HarborTasks(),), ArchiveFiles(), machine / "tasks", system_clock)


async def test_a_task_of_another_content_is_not_run(tmp_path: Path) -> None:
    """Whoever may write to the bucket could replace the tests of a task."""
    store, blobs = MemoryStore(), MemoryBlobs()
    root = write_task(tmp_path, "answer")
    [task] = await library(store, blobs, tmp_path / "one").add(root)
    honest = await blobs.read(archive_key(task.digest))
    (root / "tests" / "test.sh").write_text(HOSTILE)
    pack(root, tmp_path / "hostile.zip")
    await blobs.put_file(archive_key(task.digest), tmp_path / "hostile.zip")
    other = library(store, blobs, tmp_path / "two")
    with pytest.raises(SetupProblem, match="another digest"):
        await other.directory(task)
    assert [place for place in (tmp_path / "two" / "tasks").iterdir() if place.name != ".locks"] == []
    for broken in (honest[:-40], b"", b"PK"):
        await blobs.put_bytes(archive_key(task.digest), broken)
        with pytest.raises(SeatrialError):
            await other.directory(task)
    await blobs.put_bytes(archive_key(task.digest), honest)
    assert (await other.directory(task) / "tests" / "test.sh").read_text() != HOSTILE, "the honest one is taken"


@pytest.fixture(scope="module")
def behind() -> Iterator[str]:
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def front(behind: str) -> Iterator[Front]:
    with s3_front(behind) as front:
        yield front


@asynccontextmanager
async def machine(home: Path, front: Front, bucket: str, database: str = "") -> AsyncIterator[Installation]:
    settings = Settings(
        _env_file=None,
        home=home,
        database_url=database,
        blobs_url=f"s3://{bucket}/results",
        s3_endpoint=front.endpoint,
        s3_access_key_id="test",
        s3_secret_access_key="test-secret",
    )
    async with open_installation(settings) as installation:
        yield installation


async def test_another_machine_gets_the_task_from_the_bucket(tmp_path: Path, front: Front) -> None:
    """Two homes, one database and one bucket."""
    bucket, database = new_bucket(front.behind), f"sqlite:///{tmp_path / 'shared.db'}"
    async with machine(tmp_path / "one", front, bucket, database) as one:
        [task] = await one.library.add(write_task(tmp_path, "answer"))
    async with machine(tmp_path / "two", front, bucket, database) as two:
        front.asked.clear()
        known = await two.store.tasks.get(task.digest)
        places = await asyncio.gather(*(two.library.directory(known) for _ in range(9)))
        assert {place.is_relative_to(tmp_path / "two") for place in places} == {True}
        assert (places[0] / "tests" / "test.sh").is_file()
        fetched = [asked for asked in front.asked if asked.method == "GET"]
    assert len(fetched) == 1, "nine trials, one download"


async def test_the_processes_of_a_machine_fetch_a_task_once(tmp_path: Path, front: Front) -> None:
    """Each library stands for a process: they share the folder and nothing else, and the lock is the kernel's."""
    url = f"s3://{new_bucket(front.behind)}/results"
    store, blobs = MemoryStore(), ObjectBlobs.at(url, s3_access(front.endpoint))
    [task] = await library(store, blobs, tmp_path / "one").add(write_task(tmp_path, "answer"))
    front.asked.clear()
    processes = [library(store, blobs, tmp_path / "two") for _ in range(3)]
    places = await asyncio.gather(*(each.directory(task) for each in processes for _ in range(3)))
    assert len(set(places)) == 1 and places[0].is_relative_to(tmp_path / "two")
    assert len([asked for asked in front.asked if asked.method == "GET"]) == 1
