"""The process of the API stays light: what takes seconds and hundreds of megabytes is the workers' business."""

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


def test_the_api_loads_neither_the_model_client_nor_what_runs_trials(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _SERVE, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
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
