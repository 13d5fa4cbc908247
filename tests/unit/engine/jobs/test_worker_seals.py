"""Keys that no worker could open are refused when a job is submitted, and a worker leaves such jobs to others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from seatrial.adapters.seal_fernet import FernetSeal
from seatrial.engine.jobs.keys import WorkerSeals
from seatrial.errors import SetupProblem
from seatrial.ports.store import Heartbeat
from seatrial.testing.memory_store import MemoryStore

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def seal(folder: Path, name: str, secret: str = "") -> FernetSeal:
    (folder / name).mkdir(exist_ok=True)
    return FernetSeal(folder / name, secret)


async def check(folder: Path, *workers: FernetSeal | None, seen_at: datetime = NOON) -> None:
    store = MemoryStore()
    for number, theirs in enumerate(workers):
        told = theirs.fingerprint() if theirs else ""
        about = Heartbeat(worker=f"w{number}", host=f"host{number}", pid=1, capacity=1, started_at=NOON, seal=told)
        await store.workers.beat(about, seen_at)
    api = seal(folder, "api")
    await WorkerSeals(store.workers, api, lambda: NOON, timedelta(seconds=30), lambda worker: worker == "w9").check()


async def test_workers_of_other_homes_cannot_open_what_the_api_seals(tmp_path: Path) -> None:
    with pytest.raises(SetupProblem, match="host0, host1") as refusal:
        await check(tmp_path, seal(tmp_path, "one"), seal(tmp_path, "two"))
    assert "SEATRIAL_SECRET_KEY" in refusal.value.fix


async def test_one_that_can_is_enough(tmp_path: Path) -> None:
    await check(tmp_path, seal(tmp_path, "one"), seal(tmp_path, "api"))


async def test_nothing_is_refused_where_nothing_is_known(tmp_path: Path) -> None:
    await check(tmp_path)
    await check(tmp_path, None)
    await check(tmp_path, seal(tmp_path, "one"), seen_at=NOON - timedelta(minutes=5))


def test_a_fingerprint_tells_secret_keys_apart(tmp_path: Path) -> None:
    one, same, other = (seal(tmp_path, name, secret) for name, secret in (("a", "x"), ("b", "x"), ("c", "y")))
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()
    closed = one.close("canary")
    assert closed.startswith(f"{one.fingerprint()}:") and same.open(closed) == "canary"
    with pytest.raises(SetupProblem):
        other.open(closed)
    assert one.open(closed.partition(":")[2]) == "canary", "what older versions sealed has no fingerprint"
