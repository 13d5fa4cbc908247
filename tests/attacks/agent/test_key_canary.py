"""Root inside a sandbox looks for the provider's key everywhere it can look: environment, processes, files, memory and
network. For agents that call from inside, and for those that call from the worker."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from seatrial.adapters.runner_harbor.equip import ModelAccess
from seatrial.agents.inside import NO_KEY, call_through_gate
from seatrial.domain.job import AgentSpec
from seatrial.sandboxes.network.namespace import Namespace, entered
from seatrial.sandboxes.sandbox import Sandbox
from seatrial.scripted_models.server import ScriptedModels
from tests.gate_doors import route, way_inside
from tests.trials import Workplace
from tests.unit.adapters.runner_harbor.test_equip import HostAgent, order_of
from tests.workplace_fixture import DOCKER, OCI

KEY = "sk-canary-7f3a9c-of-the-installation"
EVERY_PROTOCOL = 3
SO_RCVBUFFORCE = 33
CALL = """
address=${OPENAI_BASE_URL#http://}; place=${address%%/*}
body='{"model": "give-up", "messages": [{"role": "user", "content": "hello"}]}'
exec 3<>/dev/tcp/${place%:*}/${place#*:} || exit 1
printf 'POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: %s\\r\\n\\r\\n%s' ${#body} "$body" >&3
cat <&3
"""
SEARCH = """
key='s[kx]-canary-7f3a9c'  # matches neither itself nor what grep keeps of it in its memory
{ env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; } 2>/dev/null | tr '\\0' '\\n' | grep -a "$key" | head -3
grep -rlas "$key" / --exclude-dir=proc --exclude-dir=sys --exclude-dir=dev 2>/dev/null | head -3
for maps in /proc/[0-9]*/maps; do
  process=${maps#/proc/}; process=${process%/maps}
  grep -E '^[0-9a-f]+-[0-9a-f]+ rw' $maps 2>/dev/null | while IFS=' -' read -r from to rest; do
    from=$((16#$from)); to=$((16#$to)); size=$((to - from))
    [ $size -lt 33554432 ] || continue
    dd if=/proc/$process/mem bs=4096 skip=$((from / 4096)) count=$((size / 4096)) 2>/dev/null
  done
done | grep -ac "$key" | sed 's/^0$/memory is clean/'
echo searched
"""


@dataclass
class SearchingAgent:
    """Calls its model, then searches, while its door is still open. Meanwhile somebody hears all of its network."""

    said: list[str] = field(default_factory=list)
    heard: bytes = b""
    _extra_env: dict[str, str] = field(default_factory=dict)

    async def run(self, instruction: str, environment: Any, context: Any) -> None:
        with hearing(environment.network_namespace) as ear:
            for script in (CALL, SEARCH, "echo $OPENAI_API_KEY"):
                self.said.append((await environment.exec(script, user="root", timeout_sec=300)).stdout or "")
            self.heard = all_of(ear)


@contextmanager
def hearing(namespace: Path) -> Iterator[socket.socket]:
    """A socket that gets every packet in the sandbox's network, more than an agent without ``CAP_NET_RAW`` gets."""

    def opened() -> socket.socket:
        there = Namespace(os.open(namespace, os.O_RDONLY | os.O_CLOEXEC))
        try:
            with entered(there):
                return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL))
        finally:
            there.close()

    with ThreadPoolExecutor(max_workers=1) as threads, threads.submit(opened).result() as ear:
        ear.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        ear.setblocking(False)
        yield ear


def all_of(ear: socket.socket) -> bytes:
    packets = []
    with suppress(BlockingIOError):
        while True:
            packets.append(ear.recv(1 << 20))
    return b"".join(packets)


@pytest.fixture(scope="module", params=[OCI, DOCKER])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> Workplace:
    engine = request.getfixturevalue("container_engine") if request.param == "docker" else None
    return Workplace(tmp_path_factory.mktemp("place"), image_cache, engine)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(place: Workplace) -> AsyncIterator[Sandbox]:
    shared = place.sandbox()
    await shared.start(force_build=False)
    yield shared
    await shared.stop(delete=True)


@pytest.mark.asyncio(loop_scope="module")
async def test_the_key_is_nowhere_inside_and_the_model_answers(sandbox: Sandbox, tmp_path: Path) -> None:
    agent = SearchingAgent()
    async with (
        ScriptedModels(key=KEY) as models,
        way_inside(tmp_path, route(models.base_url, "openai/give-up", KEY)) as way,
    ):
        call_through_gate(agent, way)
        await agent.run(instruction="", environment=sandbox, context=None)
    answered, searched, placeholder = agent.said
    assert answered.startswith("HTTP/1.1 200") and KEY not in answered
    assert searched.split("\n") == ["memory is clean", "searched", ""]
    assert placeholder.strip() == NO_KEY and models.calls == 1
    assert b'"content": "hello"' in agent.heard and KEY.encode() not in agent.heard


@pytest.mark.filterwarnings("ignore")  # LiteLLM's types make pydantic warn on first use
@pytest.mark.asyncio(loop_scope="module")
async def test_the_key_of_an_agent_outside_is_nowhere_inside_either(sandbox: Sandbox, tmp_path: Path) -> None:
    """terminus-2 calls from the worker, while commands of its model run inside."""
    spec = AgentSpec(name="terminus-2", model="openai/give-up")
    async with ScriptedModels(key=KEY) as models, ModelAccess() as access, AsyncExitStack() as doors:
        spec = spec.model_copy(update={"options": {"api_base": models.base_url}})
        equipment = await access.equip(order_of(tmp_path, spec, OPENAI_API_KEY=KEY), doors)
        agent: Any = HostAgent(equipment)
        equipment.hand_to(agent)
        assert sandbox.network_namespace is not None
        with hearing(sandbox.network_namespace) as ear:
            assert (await agent._llm.call("hello")).content
            found = await sandbox.exec(SEARCH, user="root", timeout_sec=300)
            heard = all_of(ear)
    assert (found.stdout or "").split("\n") == ["memory is clean", "searched", ""] and models.calls == 1
    assert KEY not in equipment.agent.model_dump_json() and KEY.encode() not in heard


@pytest.mark.asyncio(loop_scope="module")
async def test_the_search_finds_a_key_that_is_there(sandbox: Sandbox) -> None:
    """The control: a key in the environment, as installed agents had it before, is found there and in the memory."""
    found = await sandbox.exec(SEARCH, env={"OPENAI_API_KEY": KEY}, user="root", timeout_sec=300)
    lines = (found.stdout or "").split("\n")
    assert f"OPENAI_API_KEY={KEY}" in lines and "memory is clean" not in lines
