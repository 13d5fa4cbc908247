"""Agents of our own, for tests that name one by import path: ``-a tests.e2e.agents:Patient``."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import httpx
from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext


class Patient(BaseAgent):
    """Tells that it began, waits for a gate on this machine to open, then writes the answer into the sandbox. The
    first ``free`` of them do not wait."""

    def __init__(self, *arguments: Any, gate: str, diary: str, free: int = 0, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._gate = Path(gate)
        self._diary = Path(diary)
        self._free = free

    @staticmethod
    def name() -> str:
        return "patient"

    def version(self) -> str:
        return "7.0"

    async def setup(self, environment: BaseEnvironment) -> None:
        pass

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        with self._diary.open("a") as diary:
            diary.write(f"{os.getpid()}\n")
        is_free = len(self._diary.read_text().splitlines()) <= self._free
        while not is_free and not self._gate.exists():
            await asyncio.sleep(0.05)
        await environment.exec("echo 42 > /app/answer.txt")


class Assassin(Patient):
    """Ends the process it runs in."""

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Crasher(Patient):
    """Ends the process it runs in, as a fault in native code does."""

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        os.abort()


class Secretary(BaseAgent):
    """Writes down what it was given: its options, its model, its environment."""

    def __init__(self, *arguments: Any, colour: str = "none", depth: int = 0, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if depth < 0:
            raise ValueError("depth must not be negative")
        self._told = f"{colour} {depth} {type(depth).__name__} {self.model_name}"

    @staticmethod
    def name() -> str:
        return "secretary"

    def version(self) -> str:
        return "1.0"

    async def setup(self, environment: BaseEnvironment) -> None:
        pass

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        await environment.exec(f"echo '{self._told}' > /app/told.txt")
        await environment.exec('echo "$TOWN" >> /app/told.txt', env=self.extra_env)
        (self.logs_dir / "diary.txt").write_text(f"{instruction}\n")


_CALL = """
call() {
  body='{"model": "m", "messages": [{"role": "user", "content": "hello"}], "stream": '$1'}'
  address=${OPENAI_BASE_URL#http://}; place=${address%%/*}
  exec 3<>/dev/tcp/${place%:*}/${place#*:} || exit 1
  printf 'POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: %s\\r\\n\\r\\n%s' ${#body} "$body" >&3
  head -n 1 <&3 | grep -q ' 200 ' || exit 1
  cat <&3 >/dev/null
}
"""


class Talker(BaseAgent):
    """Calls its model from inside the sandbox: plain, in a stream, and then both at once."""

    @staticmethod
    def name() -> str:
        return "talker"

    def version(self) -> str:
        return "1.0"

    async def setup(self, environment: BaseEnvironment) -> None:
        pass

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        script = f"{_CALL}\ncall false; call true; (call false) & (call true) & wait; echo 42 > /app/answer.txt"
        await environment.exec(script, env=self.extra_env)


class HostCaller(BaseAgent):
    """Calls its model from this process, at the address that it is given, and writes the answer into the sandbox."""

    calls_from_host = True

    def __init__(self, *arguments: Any, api_base: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._api_base = api_base

    @staticmethod
    def name() -> str:
        return "host-caller"

    def version(self) -> str:
        return "1.0"

    async def setup(self, environment: BaseEnvironment) -> None:
        pass

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        body = {"model": self.model_name, "messages": [{"role": "user", "content": instruction}]}
        async with httpx.AsyncClient(trust_env=False, timeout=180) as client:
            answer = await client.post(f"{self._api_base}/chat/completions", json=body)
        answer.raise_for_status()
        await environment.exec("echo 42 > /app/answer.txt")


class Reader(BaseAgent):
    """Reads in the sandbox what it is told of its limits, and keeps it with its instruction."""

    @staticmethod
    def name() -> str:
        return "reader"

    def version(self) -> str:
        return "1.0"

    async def setup(self, environment: BaseEnvironment) -> None:
        pass

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        (self.logs_dir / "instruction.txt").write_text(instruction)
        told = await environment.exec('echo "$SEATRIAL_DEADLINE"; cat "$SEATRIAL_LIMITS"')
        (self.logs_dir / "told.txt").write_text(told.stdout or "")
        changed = await environment.exec('echo mine > "$SEATRIAL_LIMITS"')
        (self.logs_dir / "changed.txt").write_text(str(changed.return_code))
