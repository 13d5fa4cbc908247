"""The doors of one service, as a tenant sees them: the native API, TBench Runner's and AgentCompass's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from seatrial.domain.token import Role
from tests.api_in_process import Api, api_open, bearer
from tests.command_line import SAMPLES
from tests.contracts.http.server import task_zip

OPEN: dict[str, Any] = {"host": "0.0.0.0", "auth": "none"}
"""A server that everybody may call. In these tests it does not listen at all."""


class Doors:
    """One tenant, with a token of the given role where the server asks for one."""

    def __init__(self, api: Api, secret: str | None) -> None:
        self.api = api
        self.headers = bearer(secret) if secret is not None else {}

    async def job(self, expect: int = 201, keys: dict[str, str] | None = None, **wanted: Any) -> dict[str, Any]:
        """``POST /api/v1/jobs`` of the sample answer-file."""
        headers = [("X-Provider-Key", f"{name}={value}") for name, value in (keys or {}).items()]
        body = {"tasks": ["answer-file"], **wanted}
        path = "/api/v1/jobs"
        answer = await self.api.client.post(path, json=body, headers=[*self.headers.items(), *headers])
        assert answer.status_code == expect, answer.text
        return dict(answer.json())

    async def agent(self, name: str, model: str | None = None, expect: int = 201, **entry: Any) -> dict[str, Any]:
        return await self.job(expect, agents=[{"name": name, "model": model, **entry}])

    async def runner(self, expect: int = 200, archive: bytes | None = None, **fields: Any) -> dict[str, Any]:
        """``POST /api/tasks`` with an archive: TBench Runner's door."""
        wanted = {"name": "hello", "agent": "oracle", **fields}
        files = {"file": ("hello.zip", archive or task_zip(), "application/zip")}
        answer = await self.api.client.post("/api/tasks", params=wanted, files=files, headers=self.headers)
        assert answer.status_code == expect, answer.text
        return dict(answer.json())

    async def compass(self, expect: int, **llm: Any) -> dict[str, Any]:
        """``POST /api/tasks`` with a document: AgentCompass's door. What is taken waits for a worker, so only refusals
        are asked for here."""
        body = {"params": {"task_id": "answer-file"}, "llm_config": {"model_name": "gpt-4", "api_key": "sk-x1", **llm}}
        answer = await self.api.client.post("/api/tasks", json=body, headers=self.headers)
        assert answer.status_code == expect, answer.text
        return dict(answer.json())


@asynccontextmanager
async def doors_open(home: Path, role: Role | None = None, **settings: Any) -> AsyncIterator[Doors]:
    """With a role, the server asks for tokens and the tenant has one of that role."""
    given = {"auth": "token", **settings} if role is not None else settings
    async with api_open(home, _env_file=None, tb2_dir=SAMPLES, **given) as api:
        doors = Doors(api, await api.token(role) if role is not None else None)
        installation = api.service.installation
        await installation.library.add(SAMPLES / "answer-file")
        yield doors
