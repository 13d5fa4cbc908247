"""Fault 18: a key that came by the URL, a header or a body, and was told by the agent, is nowhere afterwards.

Looked for in the database with its log, the blobs, the work folders, the logs of the API and its worker, the arguments
of every process of this machine while it ran, and every answer of the API. The model's server really got each key.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import json
import os
import secrets
import sqlite3
import threading
import zipfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from seatrial.scripted_models.server import ScriptedModels
from tests.command_line import ROOT, CommandLine
from tests.running_service import service_up
from tests.task_files import write_task

pytestmark = pytest.mark.sandbox

TELLTALE = "tests.e2e.telltale:Telltale"
COMMANDS = "Run this:\n\n```sh\nenv\necho 42 > /app/answer.txt\n```\n"
TELLING_TEST = """cat /app/told.txt
printf '{"results":{"tests":[{"name":"test_it","status":"failed","message":"%s"}]}}' "$(cat /app/told.txt)" \\
  > /logs/verifier/ctrf.json
echo 0 > /logs/verifier/reward.txt"""


def canary(where: str) -> str:
    return f"sk-canary-{where}-{secrets.token_hex(12)}"


@dataclass
class Eavesdropper:
    """Reads the arguments of all processes, again and again, for as long as it is there."""

    needles: list[bytes]
    heard: set[str] = field(default_factory=set)
    rounds: int = 0

    def __enter__(self) -> Eavesdropper:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _listen(self) -> None:
        while not self._stop.wait(0.1):
            self.rounds += 1
            for place in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    line = place.read_bytes()
                    if any(needle in line for needle in self.needles):
                        self.heard.add(line.decode(errors="replace"))


@dataclass
class Session:
    """A client of the service that keeps every answer."""

    client: httpx.AsyncClient
    answers: list[bytes] = field(default_factory=list)

    async def ask(self, method: str, path: str, status: int | None = None, **rest: Any) -> httpx.Response:
        answer = await self.client.request(method, path, **rest)
        self.answers.append(repr(answer.headers.raw).encode() + answer.content)
        assert status is None or answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    async def until_ended(self, job: int) -> dict[str, Any]:
        async with asyncio.timeout(200):
            while True:
                found = (await self.ask("GET", f"/api/v1/jobs/{job}", 200)).json()
                if found["ended_at"] is not None:
                    return dict(found)
                await asyncio.sleep(0.5)

    async def look_everywhere(self) -> None:
        """Every answer that could show something of a job or a trial."""
        jobs = (await self.ask("GET", "/api/v1/jobs?include=score", 200)).json()["items"]
        trials = (await self.ask("GET", "/api/v1/trials?limit=500", 200)).json()["items"]
        assert jobs and trials
        for job in jobs:
            for part in ("", "/report", "/grid", "/trials", "/trials.csv", "/events"):
                await self.ask("GET", f"/api/v1/jobs/{job['id']}{part}")
            for part in ("", "/runs"):
                await self.ask("GET", f"/api/tasks/{job['id']}{part}")
        for trial in trials:
            base = f"/api/v1/trials/{trial['id']}"
            for part in ("", "/tests", "/logs", "/trajectory", "/recording", "/events"):
                await self.ask("GET", f"{base}{part}")
            for a_try in (await self.ask("GET", base, 200)).json()["attempts"]:
                query = f"?attempt={a_try['number']}"
                files = (await self.ask("GET", f"{base}/files{query}", 200)).json()["items"]
                for file in files:
                    await self.ask("GET", f"{base}/files/{file['path']}{query}", 200)
            await self.ask("GET", f"/api/tasks/{trial['job_id']}/runs/{trial['id']}/logs")
        for path in ("/api/v1/keys", "/api/v1/stats", "/api/v1/queue", "/api/v1/workers", "/metrics", "/ready"):
            await self.ask("GET", path)


def pack(folder: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder.parent))
    return packed.getvalue()


def tasks(place: Path) -> Iterator[Path]:
    typed = write_task(place, "typed")
    (typed / "instruction.md").write_text(COMMANDS)
    yield typed
    yield write_task(place, "told", test=TELLING_TEST)


def contents(home: Path) -> dict[Path, bytes]:
    """Of all files. A worker may still remove the folder of a try that has ended."""
    kept = {}
    for folder, _, names in os.walk(home):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                path = Path(folder, name)
                if path.is_file():
                    kept[path] = path.read_bytes()
    return kept


@contextlib.asynccontextmanager
async def session(url: str) -> AsyncIterator[Session]:
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=240) as client:
        yield Session(client)


async def test_it_is_nowhere_but_at_the_model(cli: CommandLine, tmp_path: Path) -> None:
    keys = {where: canary(where) for where in ("query", "encoded", "header", "body", "kept", "told", "failed", "wrong")}
    needles = [key.encode() for key in keys.values()]
    environment = {"PYTHONPATH": str(ROOT), "SEATRIAL_LOG_LEVEL": "DEBUG", "SEATRIAL_ALLOWED_AGENTS": TELLTALE}
    async with ScriptedModels() as models:
        with service_up(cli, "--workers", "1", "-n", "4", **environment) as service, Eavesdropper(needles) as listener:
            async with session(service.url) as asked:
                await play(asked, keys, models, tmp_path)
                await asked.look_everywhere()
            logs = b"".join(path.read_bytes() for path in service.logs)
            with contextlib.closing(sqlite3.connect(cli.home / "seatrial.db")) as store:
                assert store.execute("SELECT count(*) FROM jobs WHERE sealed_keys IS NOT NULL").fetchone() == (0,)
            kept = contents(cli.home)
        received = {call.headers.get("authorization") for call in models.requests}
        logs += b"".join(path.read_bytes() for path in service.logs)
    for where in ("query", "encoded", "header", "body"):
        assert f"sha256:{hashlib.sha256(keys[where].encode()).hexdigest()}" in received, f"{where} never got there"
    assert any(path.name.startswith("seatrial.db") for path in kept) and len(kept) > 20
    assert any(b"[REDACTED]" in content for content in kept.values()), "the agent told nothing"
    assert listener.rounds > 10 and not listener.heard
    for where, key in keys.items():
        found = [str(path) for path, content in kept.items() if key.encode() in content]
        assert not found, f"{where}: {found}"
        assert key.encode() not in logs, f"{where}: in a log"
        shown = [answer for answer in asked.answers if key.encode() in answer]
        assert not shown, f"{where}: {shown[0][:600]!r}"
    assert b"seatrial.access" in logs and len(asked.answers) > 80


async def play(asked: Session, keys: dict[str, str], models: ScriptedModels, place: Path) -> None:
    files = [("files", (f"{folder.name}.zip", pack(folder), "application/zip")) for folder in tasks(place)]
    await asked.ask("POST", "/api/v1/tasks", 201, files=files)
    await asked.ask("PUT", "/api/v1/keys/OPENROUTER_API_KEY", 204, json={"value": keys["kept"]})
    typing = {"name": "terminus-2", "model": "openrouter/shell", "options": {"api_base": models.base_url}}
    job = {"tasks": ["typed"], "agents": [typing]}
    telling = {"name": TELLTALE, "model": "openrouter/shell"}
    failing = {**telling, "options": {"fails": True}}
    header = "X-Provider-Key"
    started = [
        await asked.ask("POST", f"/api/v1/jobs?openrouter_api_key={keys['query']}", 201, json=job),
        await asked.ask("POST", f"/api/v1/jobs?open%72outer%5Fapi_KEY={keys['encoded']}", 201, json=job),
        await asked.ask(
            "POST", "/api/v1/jobs", 201, json=job, headers={header: f"OPENROUTER_API_KEY={keys['header']}"}
        ),
        *[
            await asked.ask(
                "POST",
                "/api/v1/jobs",
                201,
                json={"tasks": ["told"], "agents": [agent], "retry": {"max_attempts": 1}},
                headers={header: f"OPENROUTER_API_KEY={keys[where]}"},
            )
            for where, agent in (("told", telling), ("failed", failing))
        ],
    ]
    assert [answer.headers.get("deprecation") is not None for answer in started] == [True, True, False, False, False]
    llm = {"model_name": "shell", "api_key": keys["body"], "url": models.base_url}
    waited = await asked.ask("POST", "/api/tasks", 200, json={"params": {"task_id": "typed"}, "llm_config": llm})
    assert waited.json()["final_answer"] == "True", waited.text
    await refusals(asked, keys["wrong"])
    outcomes = []
    for answer in started:
        ended = await asked.until_ended(answer.json()["id"])
        outcomes.append({name: count for name, count in ended["counts"].items() if count and name != "total"})
    assert outcomes[:3] == [{"passed": 1}] * 3, json.dumps(outcomes)
    assert outcomes[3] == {"failed": 1}, "the telling test fails on purpose"


async def refusals(asked: Session, key: str) -> None:
    """Requests that are refused for another reason: an error must not repeat what was sent."""
    body = {"params": {}, "llm_config": {"model_name": 3, "api_key": key, "url": ["x"]}}
    await asked.ask("POST", "/api/tasks", None, json=body)
    await asked.ask("POST", "/api/tasks", None, content=f'{{"llm_config": {{"api_key": "{key}"'.encode())
    await asked.ask("POST", f"/api/tasks/999/execute-async?openrouter_api_key={key}", 404)
    await asked.ask("POST", "/api/tasks/999/execute-async", 404, data={"openrouter_api_key": key})
    await asked.ask("GET", f"/nothing/here?openrouter_api_key={key}", None)
    await asked.ask("POST", "/api/v1/jobs", 422, json={"tasks": 3}, headers={"X-Provider-Key": f"XAI_API_KEY={key}"})
    await asked.ask("PUT", "/api/v1/keys/PATH", 422, json={"value": key})
    await asked.ask("PUT", "/api/v1/keys/OPENAI_API_KEY", 422, json={"value": f"{key}\n"})
    await asked.ask("PUT", "/api/v1/keys/OPENAI_API_KEY", 422, json={"values": key})
    environment = {"tasks": ["typed"], "agents": [{"name": "oracle", "env": {"OPENROUTER_API_KEY": key}}]}
    await asked.ask("POST", "/api/v1/jobs", None, json=environment)
