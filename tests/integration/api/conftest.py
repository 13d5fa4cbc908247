"""The API on each database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.databases import postgres_databases, postgres_server, sqlite_files  # noqa: F401
from tests.integration.api.service import Api, serving

KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=KINDS)
async def api(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Api]:
    url = ""
    if request.param == "sqlite":
        (tmp_path / "home").mkdir()
        await request.getfixturevalue("sqlite_files").fresh(tmp_path / "home")
    else:
        url = await request.getfixturevalue("postgres_databases").fresh()
    async with serving(tmp_path, url) as api:
        yield api


@pytest.fixture
async def local_api(tmp_path: Path) -> AsyncIterator[Api]:
    """On SQLite only, for what does not depend on the database."""
    async with serving(tmp_path) as api:
        yield api
