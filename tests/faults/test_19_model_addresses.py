"""Fault 19: on a server that others can reach, a caller names addresses of models that its operator did not list.

None of them is ever connected to, whatever it is spelled like and wherever a listed one redirects; our own key goes to
no caller's address; and what the operator listed works.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.task import TaskRef
from seatrial.engine.jobs.model_urls import ModelUrls
from seatrial.errors import InvalidInput
from seatrial.ports.store import Page
from seatrial.scripted_models.server import ScriptedModels
from seatrial.testing.fake_runner import FakeRunner
from tests.command_line import SAMPLES
from tests.contracts.http.server import Server, real_runner, serving

OURS = "sk-of-the-operator-1234"
THEIRS = "sk-of-the-caller-5678"
OPEN: dict[str, Any] = {"host": "0.0.0.0", "auth": "none"}
"""How an open server is configured; here it listens on loopback all the same."""

LISTED = "https://models.example, 10.1.2.3:8000, http://[fd00::7]:9000"
ALLOWED = (
    "https://models.example/v1",
    "HTTPS://Models.Example:443/v1?version=2",
    "http://10.1.2.3:8000",
    "https://10.1.2.3:8000/openai/v1/",
    "http://[FD00::7]:9000/v1",
)


def foreign(port: int) -> list[str]:
    """Thirty spellings and places, each of which leads, or could be read to lead, to where the trap listens."""
    return [
        f"http://127.0.0.1:{port}/v1",  # another address
        f"http://localhost:{port}/v1",  # by name
        f"http://2130706433:{port}/v1",  # decimal
        f"http://0x7f000001:{port}/v1",  # hexadecimal
        f"http://0177.0.0.1:{port}/v1",  # octal
        f"http://127.1:{port}/v1",  # short
        f"http://0:{port}/v1",  # shorter
        f"http://[::1]:{port}/v1",  # IPv6
        f"http://[::ffff:127.0.0.1]:{port}/v1",  # mapped
        f"http://[::ffff:7f00:1]:{port}/v1",  # mapped, in hexadecimal
        "http://[::ffff:10.1.2.3]:8000/v1",  # mapped form of a listed one
        "http://167838211:8000/v1",  # decimal form of a listed one
        f"http://models.example@127.0.0.1:{port}/v1",  # a listed name as user
        f"https://models.example:443@127.0.0.1:{port}/v1",  # with its port
        f"http://127.0.0.1:{port}#@models.example/v1",  # a listed name in the fragment
        f"http://127.0.0.1:{port}\\@models.example/v1",  # backslash: two programs, two readings
        f"https://models.example\\@127.0.0.1:{port}/v1",
        f"https://models.example%2f@127.0.0.1:{port}/v1",
        f"https://models.example\t@127.0.0.1:{port}/v1",  # characters that some programs drop
        f"http://127.0.0.1:{port}\n/v1",
        f" http://127.0.0.1:{port}/v1",
        "https://models.example./v1",  # trailing dot
        "https://models.example:8443/v1",  # another port
        "http://models.example/v1",  # another scheme
        "https://sub.models.example/v1",  # below a listed name
        "https://models.example.attacker.test/v1",  # beginning like a listed name
        f"http://①②⑦.⓪.⓪.①:{port}/v1",  # letters that are normalised to digits
        f"http://127。0。0。1:{port}/v1",  # dots that are normalised to dots
        f"ftp://127.0.0.1:{port}/v1",
        "file:///etc/passwd",
        f"//127.0.0.1:{port}/v1",
        "http://169.254.169.254/latest/meta-data",  # the metadata service of clouds
    ]


@pytest.fixture(autouse=True)
def only_our_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL", "_API_BASE")) or name.startswith("SEATRIAL_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", OURS)
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # as a worker sets it, before the client is imported


class Trap:
    """Listens where nobody may connect to, and counts who does."""

    def __init__(self) -> None:
        self.connections = 0

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.close()


Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(answer: Answer, host: str = "127.0.0.1") -> AsyncIterator[int]:
    server = await asyncio.start_server(answer, host, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def request(url: str, script: str = "gpt-4", **llm: Any) -> dict[str, Any]:
    config = {"model_name": script, "api_key": THEIRS, "url": url, **llm}
    return {"params": {"task_id": "answer-file"}, "llm_config": config, "max_steps": 5}


async def test_no_foreign_address_gets_as_far_as_a_trial(tmp_path: Path) -> None:
    trap, runner = Trap(), FakeRunner()
    settings = {**OPEN, "tb2_dir": SAMPLES, "model_url_allowlist": LISTED}
    async with listening(trap.connected) as port, serving(tmp_path / "home", runner, **settings) as server:
        urls = foreign(port)
        assert len(set(urls)) >= 30
        for url in urls:
            answer = await server.post("/api/tasks", status=422, json=request(url))
            assert "address" in answer["detail"], url
        assert await server.installation.store.jobs.page(Page()) == [] and runner.orders == []
        _, writer = await asyncio.open_connection("127.0.0.1", port)  # the trap works
        writer.close()
        for url in ALLOWED:
            await server.post("/api/tasks", json=request(url))
    assert trap.connections == 1
    assert [order.agent.options["api_base"] for order in runner.orders] == list(ALLOWED)
    assert all(dict(order.secrets) == {"OPENAI_API_KEY": THEIRS} for order in runner.orders)


async def test_behind_a_proxy_or_with_tokens_a_server_is_open_too(tmp_path: Path) -> None:
    foreign_address = request("http://127.0.0.1:9/v1")
    async with serving(tmp_path / "home", None, tb2_dir=SAMPLES, allowed_hosts="runner.example") as server:
        assert (await server.http.post("/api/tasks", json=foreign_address)).status_code == 422
    async with serving(tmp_path / "other", FakeRunner(), tb2_dir=SAMPLES) as loopback:
        assert (await loopback.http.post("/api/tasks", json=foreign_address)).status_code == 200


def test_addresses_anywhere_in_an_agents_options_are_found() -> None:
    urls = ModelUrls(LISTED, anywhere=False)
    evil = "http://127.0.0.1:9/v1"
    for options, env in (
        ({"api_base": evil}, {}),
        ({"base_url": evil}, {}),
        ({"api_base": "evil.example"}, {}),
        ({"llm_kwargs": {"api_base": evil}}, {}),
        ({"llm_call_kwargs": {"extra": [{"base_url": evil}]}}, {}),
        ({"anything": evil}, {}),
        ({}, {"OPENAI_BASE_URL": evil}),
        ({}, {"ANTHROPIC_API_BASE": evil}),
        ({}, {"HTTPS_PROXY": "evil.example:3128"}),
        ({"llm_kwargs": {"api_base": "https://models.example/v1"}}, {}),  # no gate would stand before it
    ):
        with pytest.raises(InvalidInput):
            urls.admit(_job(options, env))
    plain = _job({"temperature": 0.5, "extra_body": {"top_k": 3}}, {"EDITOR": "vi"})
    assert urls.admit(plain) == plain and plain.own_keys
    for options, env in (
        ({"api_base": "https://models.example/v1"}, {}),
        ({"base_url": "http://10.1.2.3:8000"}, {}),
        ({}, {"OPENAI_BASE_URL": "https://models.example/v1"}),
    ):
        assert urls.admit(_job(options, env)).own_keys is False


def test_what_the_operator_lists_has_to_be_an_address() -> None:
    for wrong in ("https://", "models example:x", "http://user@models.example", "*"):
        with pytest.raises(InvalidInput):
            ModelUrls(wrong, anywhere=False)
    assert ModelUrls("", anywhere=True).check("http://192.168.1.5:8000/v1", "url")


def _job(options: dict[str, Any], env: dict[str, str]) -> JobSpec:
    agent = AgentSpec(name="terminus-2", model="openai/gpt-4", options=options, env=env)
    return JobSpec(tasks=(TaskRef(name="t", digest="sha256:" + "0" * 64),), agents=(agent,))


@pytest.mark.sandbox
@pytest.mark.filterwarnings("ignore:Item .* on TypedDict class:UserWarning")
async def test_a_listed_address_works_and_cannot_send_us_elsewhere(tmp_path: Path, image_cache: Path) -> None:
    trap = Trap()
    async with (
        ScriptedModels(key=THEIRS) as models,
        listening(trap.connected) as trapped,
        listening(_redirecting(f"http://127.0.0.1:{trapped}/v1/chat/completions")) as redirecting,
        _in_sandboxes(tmp_path, image_cache, f"127.0.0.1:{models.port}, http://127.0.0.1:{redirecting}") as server,
    ):
        works = await server.post("/api/tasks", json=request(models.base_url, "give-up"))
        assert works["final_answer"] == "False" and models.calls >= 2
        for call in models.requests:
            assert call.headers["authorization"] == f"sha256:{hashlib.sha256(THEIRS.encode()).hexdigest()}"
        away = request(f"http://127.0.0.1:{redirecting}/v1", "give-up")
        sent_away = await server.http.post("/api/tasks", json=away)
    assert sent_away.status_code == 500 and sent_away.json()["retryable"] is False, sent_away.text
    assert "redirect" in sent_away.json()["error"] and THEIRS not in sent_away.text
    assert trap.connections == 0


@asynccontextmanager
async def _in_sandboxes(tmp_path: Path, cache: Path, listed: str) -> AsyncIterator[Server]:
    settings = {**OPEN, "tb2_dir": SAMPLES, "model_url_allowlist": listed, "sandbox": "oci", "cache": cache}
    async with (
        real_runner(cache, tmp_path.name, patience_sec=2) as runner,
        serving(tmp_path / "home", runner, **settings) as server,
    ):
        yield server


def _redirecting(target: str) -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    return answer
