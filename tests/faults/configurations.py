"""The two ways to run Seatrial that every fault is tried in: one machine, and a fleet's services.

``local`` is SQLite with wake-ups through a file; ``fleet`` is PostgreSQL with Celery on Redis. Real servers, started
once for each pytest process.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest

from seatrial.testing.redis import RedisServer
from tests.databases import PostgresDatabases
from tests.faults.trial_worker import Setup

LOCAL = "local"
FLEET = pytest.param("fleet", marks=pytest.mark.postgres)
BOTH = (LOCAL, FLEET)
FLEET_LONG = pytest.param("fleet", marks=(pytest.mark.postgres, pytest.mark.long))
"""For a fault whose fleet case ``make test`` leaves to ``make faults``."""
_REDIS_DATABASES = 16


@dataclass(frozen=True)
class Configuration:
    """What a process of this installation is told beside its home."""

    kind: str
    database_url: str = ""
    broker_url: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """For commands."""
        given = {"SEATRIAL_DATABASE_URL": self.database_url, "SEATRIAL_BROKER_URL": self.broker_url}
        return {name: value for name, value in given.items() if value}

    @property
    def settings(self) -> dict[str, Any]:
        """For ``Settings``."""
        given = {"database_url": self.database_url, "broker_url": self.broker_url}
        return {name: value for name, value in given.items() if value}

    def of(self, setup: Setup) -> Setup:
        return replace(setup, database_url=self.database_url, broker_url=self.broker_url)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="session")
def _redis_numbers() -> Iterator[int]:
    return itertools.count()


@pytest.fixture(params=BOTH)
def configuration(request: pytest.FixtureRequest) -> Configuration:
    """Of an installation that nobody used before."""
    if request.param == LOCAL:
        return Configuration(LOCAL)
    databases: PostgresDatabases = request.getfixturevalue("postgres_databases")
    server: RedisServer = request.getfixturevalue("redis_server")
    number = next(request.getfixturevalue("_redis_numbers")) % _REDIS_DATABASES
    return Configuration("fleet", _outside_of_loops(databases.fresh()), f"{server.url.rpartition('/')[0]}/{number}")


def _outside_of_loops(work: Coroutine[Any, Any, str]) -> str:
    """Tests have loops of their own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
