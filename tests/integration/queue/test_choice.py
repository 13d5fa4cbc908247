"""Settings alone choose how workers are woken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.errors import SetupProblem
from seatrial.settings import Settings
from seatrial.testing.redis import RedisServer
from seatrial.wiring import open_installation
from tests.databases import PostgresDatabases


def settings(home: Path, **more: str) -> Settings:
    return Settings(_env_file=None, home=home, cache=home / "cache", **more)  # type: ignore[arg-type]


async def chosen(wanted: Settings) -> str:
    async with open_installation(wanted) as installation:
        await installation.wake_up.announce()
        await installation.wake_up.tend()
        return type(installation.wake_up).__name__


async def test_one_machine(tmp_path: Path) -> None:
    assert await chosen(settings(tmp_path)) == "LocalWakeUp"
    elsewhere = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    assert await chosen(settings(tmp_path, database_url=elsewhere)) == "LocalWakeUp"


@pytest.mark.postgres
async def test_a_database_server_and_then_a_broker(
    tmp_path: Path, redis_server: RedisServer, postgres_databases: PostgresDatabases
) -> None:
    url = await postgres_databases.fresh()
    assert await chosen(settings(tmp_path, database_url=url)) == "PostgresWakeUp"
    assert await chosen(settings(tmp_path, database_url=url, broker_url=redis_server.url)) == "CeleryWakeUp"


async def test_an_address_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(SetupProblem, match="not one of Redis"):
        await chosen(settings(tmp_path, broker_url="amqp://guest:canary-password@somewhere//"))


def test_nothing_of_the_fleet_is_loaded_before_it_is_needed() -> None:
    code = "import sys, seatrial.wiring, seatrial.cli.main, seatrial.api.app; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert {"celery", "kombu", "redis"}.isdisjoint(loaded)
    assert "seatrial.wiring" in loaded
