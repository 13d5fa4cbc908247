"""A Redis server of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seatrial.testing.redis import RedisServer
from tests.databases import postgres_databases, postgres_server  # noqa: F401


@pytest.fixture(scope="module")
def _server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis_server(_server: RedisServer) -> RedisServer:
    """Running and empty."""
    _server.stop()
    _server.start()
    return _server
