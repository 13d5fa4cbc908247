"""Archives that find no room: the answer says so, and never that the archives were at fault."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import override

import pytest

from seatrial.adapters.archives import ArchiveFiles
from seatrial.adapters.tasks_harbor import HarborTasks
from seatrial.engine.tasks.library import TaskLibrary
from seatrial.errors import InvalidArchive, StorageFull, StoreUnavailable
from seatrial.ports.blobs import Blobs
from seatrial.testing.memory_blobs import MemoryBlobs
from tests.integration.api.service import Api, archive_of

NO_SPACE = OSError(errno.ENOSPC, "No space left on device")
BROKEN = ("files", ("broken.zip", b"not an archive"))


class SmallBlobs(MemoryBlobs):
    """Takes so many files, and then fails in the same way each time."""

    def __init__(self, room: int, fault: Exception) -> None:
        super().__init__()
        self._left = room
        self._fault = fault

    @override
    async def put_file(self, key: str, source: Path) -> int:
        if not self._left:
            raise self._fault
        self._left -= 1
        return await super().put_file(key, source)


class CrampedArchives(ArchiveFiles):
    """Has no room to unpack anything, and says so as the readers of archives do."""

    @override
    @contextmanager
    def open(self, path: Path) -> Iterator[list[Path]]:
        raise InvalidArchive(path.name, "cannot be unpacked") from NO_SPACE
        yield


def keep_in(api: Api, blobs: Blobs, files: ArchiveFiles | None = None) -> None:
    service, there = api.app.state.service, api.installation
    files = files or ArchiveFiles(limit_bytes=1 << 20)
    library = TaskLibrary(there.store.tasks, blobs, (HarborTasks(),), files, there.settings.tasks_dir, there.clock)
    api.app.state.service = replace(service, installation=replace(there, library=library))


def archives(api: Api, *names: str) -> list[tuple[str, tuple[str, bytes]]]:
    return [("files", (f"{name}.zip", archive_of(api.folder, name))) for name in names]


@pytest.mark.parametrize("fault", [StorageFull("There is no room left."), NO_SPACE], ids=["told", "met"])
async def test_no_room_for_any_archive_is_507(local_api: Api, fault: Exception) -> None:
    keep_in(local_api, SmallBlobs(0, fault))
    for files in (archives(local_api, "one", "two"), [BROKEN, *archives(local_api, "one")]):
        error = (await local_api.post("/tasks", status=507, files=files))["error"]
        assert (error["code"], error["problems"]) == ("storage_full", [])
        assert "room" in error["message"] or "full" in error["message"]
    assert (await local_api.get("/tasks"))["items"] == []


@pytest.mark.parametrize("fault", [StorageFull("There is no room left."), NO_SPACE], ids=["told", "met"])
async def test_what_found_room_is_told_beside_what_did_not(local_api: Api, fault: Exception) -> None:
    keep_in(local_api, SmallBlobs(1, fault))
    taken = (await local_api.post("/tasks", status=201, files=archives(local_api, "one", "two")))["items"]
    assert [item["error"] and item["error"]["code"] for item in taken] == [None, "storage_full"]
    assert [item["name"] for item in (await local_api.get("/tasks"))["items"]] == ["one"]


async def test_a_store_that_does_not_answer_is_503(local_api: Api) -> None:
    keep_in(local_api, SmallBlobs(0, StoreUnavailable("The files could not be reached.")))
    answer = await local_api.post("/tasks", status=503, files=archives(local_api, "one"))
    assert answer["error"]["code"] == "unavailable"


async def test_no_room_to_unpack_is_no_fault_of_the_archive(local_api: Api) -> None:
    keep_in(local_api, MemoryBlobs(), CrampedArchives(limit_bytes=1 << 20))
    for path in ("/tasks", "/tasks/validate"):
        assert (await local_api.post(path, status=507, files=archives(local_api, "one")))["error"]["code"]


async def test_with_room_the_same_archives_are_taken(local_api: Api) -> None:
    keep_in(local_api, SmallBlobs(2, NO_SPACE))
    taken = (await local_api.post("/tasks", status=201, files=archives(local_api, "one", "two")))["items"]
    assert [item["error"] for item in taken] == [None, None]
    await local_api.post("/tasks", status=422, files=[BROKEN])
