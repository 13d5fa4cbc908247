"""The relay, from a network namespace that reaches nothing else."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import InvalidInput
from seatrial.sandboxes.network.relay import ModelRelay
from seatrial.scripted_models import faults
from seatrial.scripted_models.faults import Fault
from seatrial.scripted_models.server import ScriptedModels
from tests.waiting import LIMIT_SEC

KEY = "sk-canary-relay"
AUTHORIZED = {"Authorization": f"Bearer {KEY}"}

ASK = """
import json, sys, urllib.error, urllib.request
method, url, body = json.loads(sys.argv[1])
request = urllib.request.Request(url, method=method, data=json.dumps(body).encode() if body else None)
request.add_header("Authorization", "Bearer made-up-inside")
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    with opener.open(request, timeout=60) as answer:
        print(json.dumps([answer.status, answer.read().decode()]))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, error.read().decode()]))
except OSError as error:
    print(json.dumps([0, str(error)]))
"""


@pytest.fixture
def island() -> Iterator[int]:
    """A process in a network namespace of its own, with nothing but a loopback."""
    command = ["unshare", "--net", "sh", "-c", "ip link set lo up && exec sleep 300"]
    with subprocess.Popen(command) as process:
        deadline = time.monotonic() + LIMIT_SEC
        while Path(f"/proc/{process.pid}/comm").read_text().strip() != "sleep":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield process.pid
        process.kill()


async def ask(island: int, url: str, body: Any = None, method: str = "POST") -> tuple[int, str]:
    """One request from inside."""
    process = await asyncio.create_subprocess_exec(
        *["nsenter", "-t", str(island), "-n", sys.executable, "-c", ASK, json.dumps([method, url, body])],
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    status, text = json.loads(output)
    return status, text


def namespace(island: int) -> Path:
    return Path(f"/proc/{island}/ns/net")


CHAT = {"model": "give-up", "messages": [{"role": "user", "content": "hello"}]}


async def test_inside_only_the_relay_reaches_the_model(island: int) -> None:
    async with ScriptedModels(key=KEY) as models, ModelRelay(models.base_url, namespace(island), AUTHORIZED) as relay:
        direct, why = await ask(island, f"{models.base_url}/chat/completions", CHAT)
        status, text = await ask(island, f"{relay.url}/chat/completions", CHAT)
    assert (direct, "refused" in why) == (0, True)
    assert status == 200
    assert json.loads(text)["choices"][0]["message"]["content"]
    assert (models.calls, relay.calls, relay.refused) == (1, 1, 0)


async def test_the_key_is_put_in_outside(island: int) -> None:
    async with ScriptedModels(key=KEY) as models, ModelRelay(models.base_url, namespace(island), AUTHORIZED) as relay:
        await ask(island, f"{relay.url}/chat/completions", CHAT)
    (call,) = models.requests
    assert call.headers["authorization"] == f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"
    assert call.headers["host"] == models.base_url.split("/")[2]


async def test_nobody_outside_hears_it(island: int) -> None:
    async with ScriptedModels() as models, ModelRelay(models.base_url, namespace(island)) as relay:
        port = int(relay.url.split(":")[2].split("/")[0])
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        assert (await ask(island, f"{relay.url}/models", method="GET"))[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/other", 403),
        ("POST", "/v1/../other", 403),
        ("POST", "/v1/%2e%2e/other", 403),
        ("POST", "/v1x/chat/completions", 403),
        ("DELETE", "/v1/models", 405),
        ("GET", "/v1/models", 200),
    ],
)
async def test_only_the_models_own_path_is_open(island: int, method: str, path: str, status: int) -> None:
    async with ScriptedModels() as models, ModelRelay(models.base_url, namespace(island)) as relay:
        origin = relay.url.removesuffix("/v1")
        body = CHAT if method == "POST" else None
        assert (await ask(island, origin + path, body, method))[0] == status
        assert relay.refused == (status != 200)
        assert models.calls == 0


async def test_streams_and_faults_come_through(island: int) -> None:
    limit = Fault(kind="rate_limit", retry_after_sec=9)
    async with (
        ScriptedModels(faults=faults.first([limit])) as models,
        ModelRelay(models.base_url, namespace(island)) as relay,
    ):
        limited, _ = await ask(island, f"{relay.url}/chat/completions", CHAT)
        status, text = await ask(island, f"{relay.url}/chat/completions", {**CHAT, "stream": True})
    assert limited == 429
    assert (status, text.endswith("data: [DONE]\n\n")) == (200, True)


async def test_a_model_that_is_away_is_told_so(island: int) -> None:
    async with ScriptedModels() as models:
        gone = models.base_url
    async with ModelRelay(gone, namespace(island)) as relay:
        status, text = await ask(island, f"{relay.url}/chat/completions", CHAT)
    assert (status, "does not answer" in text) == (502, True)


async def test_a_second_request_on_the_same_connection_goes_nowhere() -> None:
    async with ScriptedModels() as models, ModelRelay(models.base_url, None) as relay:
        port = int(relay.url.split(":")[2].split("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        one = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"
        smuggled = b"GET /other HTTP/1.1\r\nHost: x\r\n\r\n"
        writer.write(one + smuggled)
        answers = await reader.read()
        writer.close()
    assert answers.count(b"HTTP/1.1 200") == 1
    assert b"404" not in answers


@pytest.mark.parametrize("address", ["", "model", "ftp://x/v1", "file:///etc/passwd", "http:///v1"])
def test_what_is_no_address_of_a_model_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput):
        ModelRelay(address, None)


async def test_a_redirect_ends_at_the_relay(island: int) -> None:
    async def send_away(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/v1\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(send_away, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, ModelRelay(f"http://127.0.0.1:{port}/v1", namespace(island), AUTHORIZED) as relay:
        status, text = await ask(island, f"{relay.url}/chat/completions", CHAT)
    assert status == 404 and "redirect" in text and "Location" not in text


async def test_a_caller_of_our_own_may_send_the_key_itself() -> None:
    here = int(Path("/proc/self").resolve().name)
    async with (
        ScriptedModels(key="made-up-inside") as models,
        ModelRelay(models.base_url, None, passes_keys=True) as open_relay,
        ModelRelay(models.base_url, None) as closed_relay,
    ):
        passed, _ = await ask(here, f"{open_relay.url}/chat/completions", CHAT)
        dropped, _ = await ask(here, f"{closed_relay.url}/chat/completions", CHAT)
    assert (passed, dropped) == (200, 401)
