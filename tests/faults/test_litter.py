"""Fault 21, whole: eight trials leave 50,000 files each, and a neighbour's job on the same worker is not scored for it.

``make faults`` runs it; ``test_neighbours_files.py`` measures the same with fewer files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seatrial.api.answers import NATIVE
from tests.contracts.http.server import Server, real_runner, serving, task_zip
from tests.waiting import eventually

pytestmark = [pytest.mark.sandbox, pytest.mark.long, pytest.mark.timeout(900)]

_OFFENDERS, _NEIGHBOURS, _FILES = 8, 3, 50_000
_LITTER = f"""#!/bin/bash
echo hello > /app/hello
perl -e 'mkdir "/logs/agent/d"; for (1 .. {_FILES}) {{ open F, ">", "/logs/agent/d/$_" or die; print F $_ }}'
"""


async def test_a_neighbour_passes_beside_litter(tmp_path: Path, image_cache: Path) -> None:
    async with (
        real_runner(image_cache, tmp_path.name) as runner,
        serving(tmp_path / "home", runner, capacity=_OFFENDERS + _NEIGHBOURS) as server,
    ):
        litter = await _job(server, "litter", _OFFENDERS, **{"solution/solve.sh": _LITTER})
        await eventually(lambda: _is_collecting(server, litter), "a trial is graded and its files are collected", 540)
        quiet = await _job(server, "quiet", _NEIGHBOURS)
        await _ended(server, quiet)
        beside = await _trials(server, quiet)
        await _ended(server, litter)
        assert [(trial["outcome"], trial["result"]["marks"]) for trial in beside] == [("passed", [])] * _NEIGHBOURS
        for trial in await _trials(server, litter):
            assert trial["outcome"] == "passed"
            assert trial["result"]["files_left_out"], "what was not kept is said"


async def _job(server: Server, name: str, attempts: int, **files: str) -> int:
    archive = {"files": (f"{name}.zip", task_zip(name, **files), "application/zip")}
    added = await server.http.post(f"{NATIVE}/tasks", files=archive)
    assert added.status_code == 201, added.text
    wanted = {"tasks": [name], "agents": [{"name": "oracle"}], "attempts": attempts}
    return int((await server.post(f"{NATIVE}/jobs", 201, json=wanted))["id"])


async def _trials(server: Server, job_id: int) -> list[dict[str, Any]]:
    listed = (await server.get(f"{NATIVE}/jobs/{job_id}/trials"))["items"]
    return [await server.get(f"{NATIVE}/trials/{trial['id']}") for trial in listed]


async def _is_collecting(server: Server, job_id: int) -> bool:
    states = [(trial["state"], trial["phase"]) for trial in await _trials(server, job_id)]
    return any(state == "ended" or phase == "verify" for state, phase in states)


async def _ended(server: Server, job_id: int) -> None:
    async def ended() -> bool:
        return bool((await server.get(f"{NATIVE}/jobs/{job_id}"))["ended_at"])

    await eventually(ended, f"job {job_id} ended", 540)
