from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from seatrial.testing.fake_runner import FakeRunner
from tests.contracts.http.server import Server, serving


@pytest.fixture(autouse=True)
def no_keys_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL", "_API_BASE")) or name.startswith("SEATRIAL_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # as a worker sets it, before the client is imported


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """Everything passes at once."""
    async with serving(tmp_path / "home", FakeRunner()) as running:
        yield running


@pytest.fixture
async def idle(tmp_path: Path) -> AsyncIterator[Server]:
    """Nobody works here."""
    async with serving(tmp_path / "home", None) as running:
        yield running
