"""Passes commands from other processes of this machine to open rollouts, over a socket that only this user may open.

Some frameworks run their tools in a separate process, while the sandbox belongs to the process that grades. ``ask`` is
the client side. Each rollout has a ticket with an unguessable secret.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import httpx

from seatrial.domain.frozen import Frozen
from seatrial.errors import NotFound, SandboxFault, SeatrialError
from seatrial.plain_http import BadRequest, Request, Response, read_request
from seatrial.rollouts.rollout import Rollout
from seatrial.system.removal import remove_tree


class Ticket(Frozen):
    """How another process reaches one rollout."""

    socket: str
    rollout: str


class Reply(Frozen):
    answer: str = ""
    out_of_time: bool = False
    fault: str = ""
    """The sandbox's error, if any. The rollout remembers it and can no longer be graded."""


class CommandSocket:
    """Opened with the first ticket, on the event loop of the caller."""

    def __init__(self) -> None:
        self._rollouts: dict[str, Rollout] = {}
        self._folder: Path | None = None
        self._server: asyncio.Server | None = None
        self._opening = asyncio.Lock()

    async def ticket(self, rollout: Rollout) -> Ticket:
        async with self._opening:
            if self._server is None:
                self._folder = Path(tempfile.mkdtemp(prefix="seatrial-commands-"))
                self._server = await asyncio.start_unix_server(self._serve, self._folder / "socket")
        ticket = Ticket(socket=str(self._folder and self._folder / "socket"), rollout=secrets.token_urlsafe(24))
        self._rollouts[ticket.rollout] = rollout
        return ticket

    def void(self, ticket: Ticket) -> None:
        self._rollouts.pop(ticket.rollout, None)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._folder is not None:
            await asyncio.to_thread(remove_tree, self._folder)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        response = Response(writer)
        try:
            request = await read_request(reader, writer)
            if request is not None:
                await response.json(200, (await self._reply(request)).model_dump())
        except BadRequest as error:
            await response.json(error.status, {"fault": str(error)})
        finally:
            with suppress(ConnectionError):
                writer.close()

    async def _reply(self, request: Request) -> Reply:
        try:
            commands = [str(command) for command in json.loads(request.body)["commands"]]
        except (ValueError, KeyError, TypeError) as error:
            raise BadRequest(400, f"The body contains no commands: {error!r}.") from error
        rollout = self._rollouts.get(request.path.lstrip("/"))
        if rollout is None:
            raise BadRequest(404, "There is no such rollout.")
        try:
            answer = await rollout.execute_commands(commands)
        except SeatrialError as fault:
            return Reply(fault=str(fault))
        return Reply(answer=answer, out_of_time=rollout.out_of_time)


async def ask(ticket: Ticket, commands: Sequence[str]) -> Reply:
    """Runs commands in a rollout of another process. Raises ``SandboxFault`` if that process is gone."""
    transport = httpx.AsyncHTTPTransport(uds=ticket.socket)
    try:
        # The rollout limits the time of each command.
        async with httpx.AsyncClient(transport=transport, timeout=None, trust_env=False) as client:  # noqa: S113
            answer = await client.post(f"http://seatrial/{ticket.rollout}", json={"commands": list(commands)})
    except httpx.TransportError as error:
        raise SandboxFault(f"The rollout's process does not answer: {error}.") from error
    content = answer.json()
    if answer.status_code != 200:
        raise NotFound(content["fault"])
    return Reply(**content)
