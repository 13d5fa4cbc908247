"""Our own wire formats and caches beside the libraries that offer the same: what importing and using each costs.

Not part of ``make bench``: the libraries are no dependencies. Run it with them for the moment::

    uv run --with dnspython,pyroute2,aiodocker,cachetools,httpx-sse,tomlkit python -m benchmarks.libraries
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from pathlib import Path

from benchmarks.stub_engine import CONTAINER

_IMPORTS = {
    "dns": ("seatrial.sandboxes.network.dns", "dns.message"),
    "netlink": ("seatrial.sandboxes.network.netlink", "pyroute2"),
    "engine client": ("seatrial.sandboxes.docker.client", "aiodocker"),
    "least recently used": ("seatrial.engine.recent", "cachetools"),
    "server-sent events": ("seatrial.client.messages", "httpx_sse"),
    "toml": ("seatrial.adapters.terminalbench1.toml_text", "tomlkit"),
}


def main() -> None:
    for what, (ours, theirs) in _IMPORTS.items():
        print(f"import, {what}: ours {_import_ms(ours):.0f} ms, {theirs} {_import_ms(theirs):.0f} ms")
    for what, ours, theirs in (_questions(), _answers(), _cache(), _toml(), _messages()):
        _tell(what, _microseconds(ours), _microseconds(theirs))
    asyncio.run(_engine())


def _tell(what: str, mine: float, other: float) -> None:
    print(f"{what}: ours {mine:.2f} us, the library {other:.2f} us, {other / mine:.1f} x")


def _import_ms(module: str) -> float:
    """On top of what processes of ours have loaded anyway: asyncio, the clients of HTTP, and our values."""
    loaded = "import asyncio, time, aiohttp, httpx, seatrial.client, seatrial.domain.job"
    program = f"{loaded}; began = time.perf_counter(); import {module}; print(time.perf_counter() - began)"
    took = [subprocess.run([sys.executable, "-c", program], capture_output=True, check=True) for _ in range(5)]
    return min(float(run.stdout) for run in took) * 1000


def _microseconds(work: Callable[[], object], number: int = 500) -> float:
    """Processor time, so that whatever runs beside it matters less."""
    return min(timeit.repeat(work, timer=time.process_time, number=number, repeat=9)) / number * 1e6


def _questions() -> tuple[str, Callable[[], object], Callable[[], object]]:
    import dns.message

    from seatrial.sandboxes.network.dns import read_question

    wire = dns.message.make_query("a.package.example.org", "A").to_wire()
    return "read a question", lambda: read_question(wire), lambda: dns.message.from_wire(wire)


def _answers() -> tuple[str, Callable[[], object], Callable[[], object]]:
    import dns.message
    import dns.rrset

    from seatrial.sandboxes.network.dns import Address, answer, read_question

    query = dns.message.make_query("a.package.example.org", "A")
    question = read_question(query.to_wire())
    addresses = [Address(IPv4Address("192.0.2.1"), 60), Address(IPv4Address("192.0.2.2"), 60)]

    def theirs() -> bytes:
        made = dns.message.make_response(query)
        made.answer.append(dns.rrset.from_text("a.package.example.org.", 60, "IN", "A", "192.0.2.1", "192.0.2.2"))
        return made.to_wire()

    return "write an answer", lambda: answer(question, addresses=addresses), theirs


def _cache() -> tuple[str, Callable[[], object], Callable[[], object]]:
    from cachetools import LRUCache

    from seatrial.engine.recent import RecentlyUsed

    ours: RecentlyUsed[int] = RecentlyUsed(1000)
    theirs: LRUCache[int, int] = LRUCache(1000)
    for number in range(1000):
        ours.put(number, number)
        theirs[number] = number
    return "find what is remembered", lambda: ours.get(500), lambda: theirs.get(500)


def _toml() -> tuple[str, Callable[[], object], Callable[[], object]]:
    import tomlkit

    from seatrial.adapters.terminalbench1.toml_text import Value, toml_text

    tables: dict[str, dict[str, Value | None]] = {
        "": {"version": "1.0"},
        "metadata": {"author_name": "unknown", "difficulty": "medium", "tags": ("file-operations", "python")},
        "verifier": {"timeout_sec": 180.0},
        "agent": {"timeout_sec": 900.0},
        "environment": {"build_timeout_sec": 600.0, "cpus": 1, "memory_mb": 2048, "allow_internet": True},
    }

    def theirs() -> str:
        plain = {name: dict(table) for name, table in tables.items() if name}
        return tomlkit.dumps({**tables[""], **plain})

    return "write a task.toml", lambda: toml_text(tables), theirs


def _messages() -> tuple[str, Callable[[], object], Callable[[], object]]:
    """From the bytes of an answer to checked values: the library gives texts, which are then read in the same way."""
    import httpx
    from httpx_sse import EventSource

    from seatrial.client.messages import Message, MessageReader
    from seatrial.domain.event import Event

    event = {"seq": 1, "at": "2026-01-01T00:00:00Z", "kind": "trial.phase", "job_id": 1, "trial_id": 2, "data": {}}
    text = Event.model_validate(event).model_dump_json()
    stream = "".join(f"id: {number}\nevent: trial.phase\ndata: {text}\n\n" for number in range(100)).encode()
    headers = {"content-type": "text/event-stream"}

    def theirs() -> list[Message]:
        found = EventSource(httpx.Response(200, headers=headers, content=stream)).iter_sse()
        return [Message(id=one.id, kind=one.event, body=Event.model_validate_json(one.data)) for one in found]

    assert theirs() == list(MessageReader().feed(stream))
    return "read 100 events", lambda: list(MessageReader().feed(stream)), theirs


async def _engine() -> None:
    import aiodocker

    from seatrial.sandboxes.docker.client import EngineClient
    from seatrial.sandboxes.docker.command import EngineCommands, Order

    async with (
        _stub_engine() as host,
        EngineClient(host) as ours,
        aiodocker.Docker(host, api_version="v1.44") as docker,
    ):
        commands, container = EngineCommands(ours, CONTAINER), docker.containers.container(CONTAINER)
        taken = 0

        async def take(data: bytes) -> None:
            nonlocal taken
            taken += len(data)

        async def theirs(size: int) -> None:
            command = await container.exec(["write", str(size)])
            async with command.start(detach=False) as stream:
                while (message := await stream.read_out()) is not None:
                    await take(message.data)
            assert (await command.inspect())["ExitCode"] == 0

        path = f"/containers/{CONTAINER}/json"
        _tell("ask the engine", await _each(lambda: ours.get(path), 200), await _each(container.show, 200))
        for what, size, number in (("run a command", 0, 200), ("run a command that writes 16 MB", 16 << 20, 3)):

            async def mine(size: int = size) -> object:
                return await commands.run(Order(["write", str(size)], take=take))

            _tell(what, await _each(mine, number), await _each(lambda size=size: theirs(size), number))
        assert taken % (32 << 10) == 0 and taken > 0


async def _each(work: Callable[[], Awaitable[object]], number: int) -> float:
    """Microseconds of this process's processor time; the stub has its own process."""
    took = []
    for _ in range(7):
        began = time.process_time()
        for _ in range(number):
            await work()
        took.append(time.process_time() - began)
    return min(took) / number * 1e6


@asynccontextmanager
async def _stub_engine() -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "engine"
        command = [sys.executable, "-m", "benchmarks.stub_engine", str(socket)]
        stub = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        try:
            assert stub.stdout is not None
            await stub.stdout.readline()
            yield f"unix://{socket}"
        finally:
            stub.terminate()
            await stub.wait()


if __name__ == "__main__":
    main()
