"""Datasets of the operator's registry, taken in over the API: by admins, and from nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from seatrial import AsyncClient
from seatrial.cli.backend.remote import RemoteDatasets
from seatrial.domain.token import Role
from seatrial.errors import Conflict, InvalidInput, NotFound
from tests.api_in_process import api_open, bearer
from tests.integration.api.service import Api, serving
from tests.task_files import write_task

IMPORT = "/api/v1/datasets/import"


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    """Two tasks beside the registry file; ``three`` names one that is not there."""
    for name in ("one", "two"):
        write_task(tmp_path / "tasks", name)
    path = tmp_path / "registry.json"
    write_registry(path, "one", "two")
    return path


def write_registry(path: Path, *names: str) -> None:
    tasks = [{"name": name, "path": f"tasks/{name}"} for name in names]
    rows = [{"name": "pair", "version": "1.0", "tasks": tasks}]
    rows += [{"name": "broken", "version": "1.0", "tasks": [{"name": "three", "path": "tasks/three"}]}]
    path.write_text(json.dumps(rows))


def client_of(api: Api) -> AsyncClient:
    return AsyncClient("http://127.0.0.1:8000", transport=httpx.ASGITransport(api.app, raise_app_exceptions=False))


async def test_a_job_can_name_what_was_taken_in(tmp_path: Path, registry: Path) -> None:
    async with serving(tmp_path, registry=str(registry)) as api, client_of(api) as client:
        assert (await api.post("/jobs", {"dataset": "pair"}, status=422))["error"]["field"] == "dataset"
        made = await client.datasets.take_in("pair")
        assert (made.id, [task.name for task in made.tasks]) == ("pair@1.0", ["one", "two"])
        assert made == await client.datasets.take_in("pair", "1.0") == await client.datasets.get("pair")
        job = await api.post("/jobs", {"dataset": "pair@1.0"}, status=201)
        assert job["counts"]["total"] == 2


async def test_what_the_registry_lacks_is_told(tmp_path: Path, registry: Path) -> None:
    async with serving(tmp_path, registry=str(registry)) as api, client_of(api) as client:
        for name, version in (("triple", None), ("pair", "2.0"), ("broken", None)):
            with pytest.raises(NotFound):
                await client.datasets.take_in(name, version)
        assert await client.datasets.list() == []
        await client.datasets.take_in("pair")
        write_registry(registry, "one")
        with pytest.raises(Conflict):
            await client.datasets.take_in("pair")


async def test_without_a_registry_it_says_which_setting_is_missing(local_api: Api) -> None:
    error = (await local_api.post("/datasets/import", {"name": "pair"}, status=409))["error"]
    assert (error["code"], "SEATRIAL_REGISTRY" in error["fix"]) == ("conflict", True)


async def test_nobody_but_the_operator_says_where_from(tmp_path: Path, registry: Path) -> None:
    async with serving(tmp_path) as api, client_of(api) as client:
        wanted = {"name": "pair", "registry": str(registry)}
        await api.post("/datasets/import", wanted, status=422)
        with pytest.raises(InvalidInput, match="only from its own"):
            await RemoteDatasets(client).take_in("pair", None, str(registry))


async def test_it_takes_an_admin(tmp_path: Path, registry: Path) -> None:
    async with api_open(tmp_path, auth="token", registry=str(registry)) as api:
        for role, status in ((Role.USER, 403), (Role.ADMIN, 201)):
            headers = bearer(await api.token(role))
            answer = await api.client.post(IMPORT, json={"name": "pair"}, headers=headers)
            assert answer.status_code == status, answer.text
