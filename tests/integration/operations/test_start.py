"""Processes stay light: what takes seconds and hundreds of megabytes is the workers' business, and only when needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_SERVE = """
import asyncio, sys
from seatrial.service import run_service
from seatrial.api.app import create_app
from seatrial.settings import Settings

async def live():
    app = create_app(Settings(home=sys.argv[1]))
    async with app.router.lifespan_context(app):
        app.openapi()

asyncio.run(live())
print(*sorted(sys.modules))
"""

_HIRE = """
import asyncio, sys
from seatrial.settings import Settings
from seatrial.wiring import load_worker, open_installation

async def hire():
    async with open_installation(Settings(home=sys.argv[1])) as installation:
        await load_worker(installation, 1)

asyncio.run(hire())
print(*sorted(sys.modules))
"""


def test_the_api_loads_neither_the_model_client_nor_what_runs_trials(tmp_path: Path) -> None:
    loaded = _loaded_by(_SERVE, tmp_path)
    assert {"seatrial.api.app", "fastapi"} <= loaded, "it looked at the right process"
    heavy = (
        "litellm",
        "openai",
        "harbor.trial",
        "harbor.agents",
        "harbor.environments",
        "harbor.llms",
        "seatrial.agents",
    )
    assert [name for name in loaded if name.startswith(heavy)] == []


def test_a_worker_is_ready_before_it_has_the_model_client(tmp_path: Path) -> None:
    """Trials that ask no model never wait for it; the first that does, loads it."""
    loaded = _loaded_by(_HIRE, tmp_path)
    assert "harbor.trial.trial" in loaded, "it looked at the right process"
    assert {"litellm", "openai"} & loaded == set()


def _loaded_by(program: str, home: Path) -> set[str]:
    done = subprocess.run([sys.executable, "-c", program, str(home)], capture_output=True, text=True, cwd=home)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())
