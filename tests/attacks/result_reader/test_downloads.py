"""A person opens files of a hostile trial in a browser: what could run is saved, in a sandbox, under a plain name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.api_in_process import Api, api_open
from tests.attacks.result_reader.hostile_home import FILES, fill

SAVED = [path for path in FILES if path.endswith((".html", ".svg", ".pdf", ".js", ".xhtml", ".bin", ".sh"))]
SHOWN = {
    "agent/agent.log": "text/plain; charset=utf-8",
    "agent/notes.md": "text/plain; charset=utf-8",
    "agent/looks-like.txt": "text/plain; charset=utf-8",
    "agent/looks-like.json": "application/json",
    "agent/looks-like.png": "image/png",
    "agent/trajectory.json": "application/json",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("downloads")
    asyncio.run(fill(place / "home", place))
    return place / "home"


@pytest.fixture
async def api(home: Path) -> AsyncIterator[Api]:
    async with api_open(home, _env_file=None) as api:
        yield api


@pytest.mark.parametrize("path", SAVED)
async def test_what_a_browser_would_run_is_saved(api: Api, path: str) -> None:
    answer = await api.client.get(f"/api/v1/trials/1/files/{quote(path)}")
    assert answer.content == FILES[path]
    assert answer.headers["content-type"] == "application/octet-stream"
    kind, _, name = answer.headers["content-disposition"].partition("; filename*=UTF-8''")
    assert kind == "attachment" and name == quote(path.rsplit("/", 1)[-1], safe="")
    _is_boxed(answer.headers)


@pytest.mark.parametrize("path", SHOWN)
async def test_what_is_shown_is_never_guessed(api: Api, path: str) -> None:
    """Whatever its content looks like."""
    answer = await api.client.get(f"/api/v1/trials/1/files/{path}")
    assert answer.headers["content-type"] == SHOWN[path]
    _is_boxed(answer.headers)


@pytest.mark.parametrize("path", ["agent/page.html", "agent/agent.log"])
async def test_a_part_of_a_file_is_as_boxed_as_the_whole(api: Api, path: str) -> None:
    for wanted, status in (("bytes=0-3", 206), ("bytes=99999-", 416), ("bytes=-2", 206)):
        answer = await api.client.get(f"/api/v1/trials/1/files/{path}", headers={"Range": wanted})
        assert answer.status_code == status
        _is_boxed(answer.headers)


async def test_a_page_is_no_log(api: Api) -> None:
    assert (await api.client.get("/api/v1/trials/1/logs/agent/page.html")).status_code == 404
    log = await api.client.get("/api/v1/trials/1/logs/agent/agent.log")
    assert log.headers["content-type"] == "text/plain; charset=utf-8"
    _is_boxed(log.headers)


async def test_a_trajectory_that_nobody_can_read_is_no_fault_of_ours(api: Api) -> None:
    for pair in ((1, 2), (2, 1), (2, 2)):
        answer = await api.client.get("/api/v1/trials/{}/diverges-from/{}".format(*pair))
        assert answer.status_code == 409, answer.text


async def test_two_honest_trajectories_are_compared(api: Api) -> None:
    assert (await api.client.get("/api/v1/trials/3/diverges-from/3")).status_code == 200


def _is_boxed(headers: object) -> None:
    told = dict(headers)  # type: ignore[call-overload]
    assert told["x-content-type-options"] == "nosniff"
    assert told["content-security-policy"] == "default-src 'none'; sandbox"
    assert told["x-frame-options"] == "DENY" and told["cross-origin-resource-policy"] == "same-origin"
