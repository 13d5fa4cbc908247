"""What people see of running trials with Celery's and Redis' own tools, over TLS with a password."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from seatrial.adapters.wake_up_celery.app import celery_app
from seatrial.logs import write_logs
from seatrial.settings import Settings
from seatrial.testing.redis import RedisServer
from tests.integration.queue.fleet import Gate, ended, fleet, settings_of, submit
from tests.waiting import eventually

PASSWORD = "canary/password+of@redis"
KEY = "sk-canary-key-of-a-provider-123456"


@pytest.fixture(scope="module")
def locked_server() -> Iterator[RedisServer]:
    with RedisServer(PASSWORD, tls=True) as server:
        yield server


def celery(server: RedisServer, *words: str) -> subprocess.CompletedProcess[str]:
    """As an operator calls it, with the address in the environment."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "SEATRIAL_BROKER_URL": server.url}
    command = [sys.executable, "-m", "celery", "-A", "seatrial.celery", *words]
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=120)


def everything_in(client: Redis) -> bytes:
    """Every key with its value. Celery encodes the bodies of its messages, so those are decoded, too."""
    parts: list[bytes] = []
    for key in client.scan_iter():
        match client.type(key):
            case b"string":
                values = [client.get(key)]
            case b"list":
                values = client.lrange(key, 0, -1)
            case b"set":
                values = list(client.smembers(key))
            case b"hash":
                values = [part for pair in client.hgetall(key).items() for part in pair]
            case b"zset":
                values = client.zrange(key, 0, -1)
            case other:
                raise AssertionError(f"an unknown kind of key: {other!r}")
        parts += [key, *map(decoded, values)]
    return b"\n".join(parts)


def decoded(value: bytes) -> bytes:
    """The value, and what is encoded in it."""
    bodies = re.findall(rb'"body": "([A-Za-z0-9+/=]+)"', value)
    return b" ".join([value, *map(base64.b64decode, bodies)])


@pytest.fixture
def logged() -> Iterator[Callable[[Settings], StringIO]]:
    """Writes logs as a process of the service does, and undoes it."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    stream = StringIO()

    def start(settings: Settings) -> StringIO:
        with redirect_stderr(stream):
            write_logs(settings)
        return stream

    yield start
    root.handlers[:] = before
    root.setLevel(level)


async def test_tools_tell_the_truth_and_no_secret(
    tmp_path: Path, locked_server: RedisServer, logged: Callable[[Settings], StringIO]
) -> None:
    gate, server = Gate(), locked_server
    settings = settings_of(tmp_path, server.url, openrouter_api_key=KEY)
    said = logged(settings)
    with Redis.from_url(server.url) as client, client.pubsub() as pubsub:
        pubsub.psubscribe("*")
        async with fleet(settings, gate) as installation:
            await submit(installation, 2, {"OPENROUTER_API_KEY": KEY + "-of-the-job"})
            await eventually(lambda: len(gate.began) == 2, "both run")
            node = await _the_worker_key_is_right(client, gate)
            assert await asyncio.to_thread(celery_app(server.url).control.enable_events, [node], reply=True, timeout=60)
            await _celery_knows(server, node, gate)
            more = await submit(installation, 9)  # fills the worker, so that hints wait in Redis
            await eventually(lambda: len(gate.began) == 4, "the worker is full")
            await eventually(lambda: client.llen("seatrial"), "hints wait")
            held = everything_in(client)
            assert KEY.encode() not in held and PASSWORD.encode() not in held
            assert b"seatrial.hint" in held and b"answer-file" in held, "the positive control"
            gate.opened.set()
            await ended(installation, more)
        heard = b"".join(_data(message) for message in iter(lambda: pubsub.get_message(timeout=0.1), None))
        assert b"task-started" in heard and KEY.encode() not in heard and PASSWORD.encode() not in heard
        assert not list(client.scan_iter("seatrial:worker:*")), "a worker that leaves takes its key with it"
    assert KEY not in said.getvalue() and PASSWORD not in said.getvalue()


async def _the_worker_key_is_right(client: Redis, gate: Gate) -> str:
    def shown() -> list[dict[str, Any]]:
        keys = list(client.scan_iter("seatrial:worker:*"))
        return [json.loads(client.get(key) or "{}") for key in keys]

    await eventually(lambda: [len(worker["trials"]) for worker in shown()] == [2], "both are in the worker's key")
    (worker,) = shown()
    assert {trial["trial"] for trial in worker["trials"]} == set(gate.began)
    assert worker["pid"] == os.getpid() and worker["capacity"] == 4
    assert all(trial["job"] == 1 and trial["task"] == "answer-file" and trial["since"] for trial in worker["trials"])
    (key,) = client.scan_iter("seatrial:worker:*")
    assert 0 < client.ttl(key) <= 30
    return f"seatrial@{worker['worker']}"


async def _celery_knows(server: RedisServer, node: str, gate: Gate) -> None:
    asked = await asyncio.to_thread(celery, server, "inspect", "active", "--json", "-d", node, "-t", "60")
    assert asked.returncode == 0, asked.stderr
    tasks = json.loads(asked.stdout)[node]
    assert {task["kwargs"]["trial"] for task in tasks} == set(gate.began)
    assert all(task["name"] == "seatrial.trial" and task["kwargs"]["job"] == 1 for task in tasks)
    assert all(task["time_start"] and task["worker_pid"] == os.getpid() for task in tasks)
    inspect = celery_app(server.url).control.inspect([node], timeout=60)
    stats, conf = await asyncio.to_thread(inspect.stats), await asyncio.to_thread(inspect.conf)
    assert stats[node]["pool"]["max-concurrency"] == 4
    assert conf[node]["accept_content"] == ["json"] and "canary" not in f"{stats}{conf}"


def _data(message: dict[str, Any]) -> bytes:
    return decoded(message["data"]) if isinstance(message["data"], bytes) else b""
