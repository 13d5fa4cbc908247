"""Runs one command in a container of an engine.

``sandbox_container`` runs the agent's commands with it, ``sidecar`` its own. The engine cannot end a command; the
sidecar finds it by the mark in its environment.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from seatrial.errors import SandboxFault
from seatrial.sandboxes.docker.client import Conversation, EngineClient, EngineRefused, Piece
from seatrial.sandboxes.output import CapturedStream, Ended, Listener

Take = Callable[[bytes], Awaitable[None]]

MARK = "SEATRIAL_COMMAND"
"""Environment variable by which a command is found again."""
_ATTACHED = b'{"Detach": false, "Tty": false}'
_LAST_WORDS_SEC = 1.0
_LOOK_SEC = 0.5
_EXIT_PATIENCE_SEC = 30.0


@dataclass(frozen=True, slots=True)
class Order:
    """A command for one container."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    user: str = ""
    input: AsyncIterator[bytes] | None = None
    take: Take | None = None
    """Gets the standard output instead of it being kept."""


class EngineCommands:
    """Commands in one container."""

    def __init__(self, client: EngineClient, container: str) -> None:
        self._client = client
        self._container = container

    async def run(self, order: Order, listener: Listener | None = None) -> Ended:
        """Waits for the command itself; what it left in the background may go on. ``SandboxFault`` if it cannot run."""
        exec_id = await self._prepare(order)
        stdout, stderr = CapturedStream("stdout", listener), CapturedStream("stderr", listener)
        takes = {"stdout": order.take or stdout.take, "stderr": stderr.take}
        async with self._client.conversation(f"/exec/{exec_id}/start", _ATTACHED) as line:
            feeding = asyncio.create_task(_feed(line, order.input)) if order.input is not None else None
            reading = asyncio.create_task(_read(line.pieces(), takes))
            try:
                await self._until_ended(exec_id, reading)
                if feeding is not None:
                    await feeding
            finally:
                await _end(reading, feeding)
        return Ended(await self._status(exec_id), stdout.kept.text, stderr.kept.text)

    async def _prepare(self, order: Order) -> str:
        body = {
            "Cmd": list(order.argv),
            "Env": [f"{name}={value}" for name, value in order.env.items()],
            "AttachStdin": order.input is not None,
            "AttachStdout": True,
            "AttachStderr": True,
            "User": order.user,
            **({"WorkingDir": order.cwd} if order.cwd else {}),
        }
        try:
            return str((await self._client.post(f"/containers/{self._container}/exec", body))["Id"])
        except EngineRefused as error:
            if error.status in (404, 409):
                raise SandboxFault(f"The sandbox is gone: {error.reason}") from error
            raise

    async def _until_ended(self, exec_id: str, reading: asyncio.Task[None]) -> None:
        """A background process may hold the output forever, so the state of the command itself is polled too."""
        while not reading.done():
            await asyncio.wait({reading}, timeout=_LOOK_SEC)
            if reading.done():
                break
            if not (await self._client.get(f"/exec/{exec_id}/json"))["Running"]:
                await asyncio.wait({reading}, timeout=_LAST_WORDS_SEC)
                break
        if reading.done():
            await reading

    async def _status(self, exec_id: str) -> int:
        """The engine closes the output a moment before it knows the status."""
        until = asyncio.get_running_loop().time() + _EXIT_PATIENCE_SEC
        pause = 0.002
        while (found := await self._client.get(f"/exec/{exec_id}/json"))["Running"]:
            if asyncio.get_running_loop().time() > until:
                raise SandboxFault("The container engine does not say how a command ended.")
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.25)
        if found["ExitCode"] is None:
            raise SandboxFault("The container engine lost a command.")
        return int(found["ExitCode"])


async def _read(pieces: AsyncIterator[Piece], takes: Mapping[str, Take]) -> None:
    async for piece in pieces:
        await takes[piece.stream](piece.data)


async def _feed(line: Conversation, pieces: AsyncIterator[bytes]) -> None:
    try:
        async for data in pieces:
            await line.say(data)
        line.done()
    except ConnectionError:
        return  # the command ended before it had read everything, which its status shows


async def _end(*tasks: asyncio.Task[None] | None) -> None:
    for task in tasks:
        if task is not None and not task.done():
            task.cancel()
    await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)
