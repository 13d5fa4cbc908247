"""The signals of autoscalers: the same numbers in the API, in ``/metrics`` and on the command line."""

from __future__ import annotations

from pathlib import Path

from seatrial.settings import Settings
from seatrial.testing.fake_runner import FakeRunner
from tests.integration.operations.conftest import Api, opened
from tests.integration.operations.test_metrics import numbers
from tests.waiting import eventually


def a_fleet(place: Path) -> Settings:
    """Nine trials with one processor each fill a machine."""
    return Settings(
        home=place / "home", cache=place / "cache", heartbeat_sec=0.1, machine_memory_mb=20_480, machine_cpus=1.125
    )


async def test_queued_and_running_trials_are_told_in_machines(tmp_path: Path) -> None:
    async with opened(a_fleet(tmp_path), tmp_path) as api:
        job = await api.submit(18)
        state = (await api.get("/api/v1/fleet")).json()
        assert (state["queued"], state["running"], state["workers"]) == (18, 0, 0)
        assert (state["work_units"], state["desired_workers"]) == (2.0, 2)
        assert (state["machine_memory_mb"], state["machine_cpus"]) == (20_480, 1.125)
        told = await numbers(api)
        assert (told["seatrial_work_units"], told["seatrial_desired_workers"]) == (2.0, 2)
        async with api.worker(FakeRunner(seconds=60), capacity=9):
            await eventually(lambda: running(api, 9), "nine trials run")
            state = (await api.get("/api/v1/fleet")).json()
            assert (state["queued"], state["workers"], state["desired_workers"]) == (9, 1, 2), "claims remove nothing"
            assert state["queue_oldest_seconds"] > 0
            await api.installation.store.jobs.cancel(job.id, api.installation.clock())
        await eventually(lambda: desired(api, 0), "no work is left")


async def test_without_settings_the_machine_of_a_live_worker_counts(api: Api) -> None:
    async with api.worker(FakeRunner()):
        (row,) = await api.installation.store.workers.all()
        state = (await api.get("/api/v1/fleet")).json()
        assert row.machine is not None
        assert (state["machine_memory_mb"], state["machine_cpus"]) == (row.machine.memory_mb, row.machine.cpus)


async def running(api: Api, count: int) -> bool:
    return bool((await api.get("/api/v1/fleet")).json()["running"] == count)


async def desired(api: Api, count: int) -> bool:
    return bool((await api.get("/api/v1/fleet")).json()["desired_workers"] == count)
