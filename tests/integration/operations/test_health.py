"""Alive and ready: each part that is missing is named, and comes back by itself."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

from seatrial.settings import Settings
from seatrial.system.disk import Disk
from seatrial.testing.fake_runner import FakeRunner
from tests.integration.operations.conftest import Api, opened
from tests.waiting import LIMIT_SEC, eventually


async def ready(api: Api) -> tuple[int, list[str], dict[str, str]]:
    answer = await api.get("/ready")
    body: dict[str, Any] = answer.json()
    assert body["status"] == ("ready" if answer.status_code == 200 else "not ready")
    return answer.status_code, body["missing"], {part["name"]: part["detail"] for part in body["parts"]}


async def until_ready(api: Api) -> dict[str, str]:
    async with asyncio.timeout(LIMIT_SEC):
        while True:
            status, _, details = await ready(api)
            if status == 200:
                return details
            await asyncio.sleep(0.05)


async def test_health_says_exactly_what_both_old_systems_read(api: Api) -> None:
    answer = await api.get("/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "healthy", "service": "Terminal-Bench"})


async def test_without_a_worker_it_is_not_ready_and_with_one_it_is(api: Api) -> None:
    status, missing, details = await ready(api)
    assert (status, missing) == (503, ["workers"])
    assert details["workers"] == "There is no worker."
    async with api.worker(FakeRunner()):
        assert (await until_ready(api))["workers"] == "1 available"
    assert [blob async for blob in api.installation.blobs.list("ready")] == [], "the probe leaves nothing behind"


async def test_files_that_cannot_be_kept_are_named_and_come_back(api: Api) -> None:
    folder = api.installation.settings.blobs_dir
    async with api.worker(FakeRunner()):
        shutil.rmtree(folder, ignore_errors=True)
        folder.write_text("not a folder")
        status, missing, details = await ready(api)
        assert (status, missing) == (503, ["blobs"])
        assert details["blobs"]
        folder.unlink()
        folder.mkdir()
        await until_ready(api)


async def test_a_store_that_does_not_answer_is_named(api: Api) -> None:
    await api.installation.store.__aexit__(None, None, None)
    status, missing, _ = await ready(api)
    assert status == 503
    assert "store" in missing
    assert (await api.get("/health")).status_code == 200
    await api.installation.store.__aenter__()


async def test_a_full_disk_stops_claims_and_uploads_and_is_said(tmp_path: Path) -> None:
    """The mark is set above what is free, then below it: the disk itself is full in ``tests/faults``."""
    free_mb = Disk(tmp_path, 0).free_bytes >> 20
    settings = Settings(home=tmp_path / "home", heartbeat_sec=0.05, disk_low_water_mb=2 * free_mb)
    archive = {"files": ("a.zip", b"PK", "application/zip")}
    async with opened(settings, tmp_path) as api:
        job = await api.submit(1)
        runner = FakeRunner()
        async with api.worker(runner):

            async def has_said_so() -> bool:
                return (await ready(api))[1] == ["disk", "workers"]

            await eventually(has_said_so, "the worker says that it waits")
            assert runner.orders == [], "nothing is claimed"
            status, missing, details = await ready(api)
            assert (status, missing) == (503, ["disk", "workers"])
            assert "MB left" in details["disk"]
            assert "All workers are paused" in details["workers"]
            refused = await api.client.post("/api/v1/tasks", files=archive)
            assert (refused.status_code, refused.json()["error"]["code"]) == (507, "storage_full")
            assert (await api.client.post("/api/tasks", files=archive)).status_code == 507
            assert (await api.get("/health")).status_code == 200
    async with opened(settings.model_copy(update={"disk_low_water_mb": 1}), tmp_path) as api:
        await api.work_off(job, FakeRunner())
        assert (await api.client.post("/api/v1/tasks", files=archive)).status_code != 507
