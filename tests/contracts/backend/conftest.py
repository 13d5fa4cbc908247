"""The same questions for both backends of the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contracts.backend.place import Place, local_place, remote_place


@pytest.fixture(params=["local", "remote"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    async with (local_place if request.param == "local" else remote_place)(tmp_path) as place:
        yield place
