"""The two walks through the code in ARCHITECTURE.md: every file that they name takes part, in the order of a reader."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType

import pytest

import seatrial
from seatrial.api.answers import NATIVE
from seatrial.wiring import assemble_worker
from tests.command_line import ROOT
from tests.contracts.http.server import Server, real_runner, serving, task_zip
from tests.waiting import eventually

_PACKAGE = Path(seatrial.__file__).parent
_TOOL = sys.monitoring.PROFILER_ID
_IS_FUNCTION = 1
"""``CO_OPTIMIZED``: bodies of modules and classes run at import and say nothing."""
_MOST = {"trial": 40, "request": 20}


@contextmanager
def functions_run() -> Iterator[set[str]]:
    """The files, relative to the package, of every function that begins meanwhile, in any thread."""
    files: set[str] = set()

    def began(code: CodeType, _offset: int) -> object:
        path = Path(code.co_filename)
        if code.co_flags & _IS_FUNCTION and path.is_relative_to(_PACKAGE):
            files.add(str(path.relative_to(_PACKAGE)))
        return sys.monitoring.DISABLE

    sys.monitoring.use_tool_id(_TOOL, "walks")
    sys.monitoring.register_callback(_TOOL, sys.monitoring.events.PY_START, began)
    sys.monitoring.set_events(_TOOL, sys.monitoring.events.PY_START)
    try:
        yield files
    finally:
        sys.monitoring.set_events(_TOOL, 0)
        sys.monitoring.register_callback(_TOOL, sys.monitoring.events.PY_START, None)
        sys.monitoring.free_tool_id(_TOOL)


def walk(subject: str) -> list[str]:
    """The files that ARCHITECTURE.md lists."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    section = re.search(rf"^## The walk of a {subject}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    return re.findall(r"`([\w/]+\.py)`", section[1])


@pytest.mark.parametrize("subject", sorted(_MOST))
def test_a_walk_is_short(subject: str) -> None:
    files = walk(subject)
    assert 0 < len(files) == len(set(files)) <= _MOST[subject]


@pytest.mark.sandbox
async def test_every_file_of_the_walks_takes_part(tmp_path: Path, image_cache: Path) -> None:
    async with serving(tmp_path / "home", None) as server:
        uploaded = await server.http.post(f"{NATIVE}/tasks", files={"files": ("t.zip", task_zip(), "application/zip")})
        assert uploaded.status_code == 201, uploaded.text
        with functions_run() as in_the_request:
            await server.post(f"{NATIVE}/jobs", 201, json={"tasks": ["hello"], "agents": [{"name": "oracle"}]})
        async with real_runner(image_cache, tmp_path.name) as runner:
            with functions_run() as in_the_trial:
                worker = asyncio.create_task(assemble_worker(server.installation, runner, 1).run())
                await eventually(lambda: _has_ended(server), "the trial ended")
                worker.cancel()
                await asyncio.gather(worker, return_exceptions=True)
    for subject, ran in (("request", in_the_request), ("trial", in_the_trial | in_the_request)):
        assert [file for file in walk(subject) if file not in ran] == [], f"not part of a {subject}"


async def _has_ended(server: Server) -> bool:
    return bool((await server.get(f"{NATIVE}/jobs/1"))["ended_at"])
