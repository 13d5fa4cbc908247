"""Plain tmux commands of an agent, answered by the tmux server in its sandbox without a process for each.

terminus-2 runs some twenty tmux commands in a short trial. Each would be a runtime, a shell and tmux's client, which
only passes its arguments on to the server. ``terminal.tmux_client`` does that from here. A command that is not plain
goes the usual way, and so do all later ones once an answer of the server was not understood.
"""

from __future__ import annotations

import asyncio
import errno
from dataclasses import dataclass

from seatrial.sandboxes.host.accounts import Account
from seatrial.sandboxes.host.sockets import SocketHandle
from seatrial.sandboxes.host.transfer import Transfer
from seatrial.sandboxes.oci.command import Call
from seatrial.sandboxes.oci.pod import Pod
from seatrial.sandboxes.output import Ended, Listener
from seatrial.sandboxes.terminal.tmux_client import (
    VERSION_QUESTION,
    Client,
    NotUnderstood,
    ask,
    is_known_version,
    plain_words,
)

_PLACE = "/tmp"  # noqa: S108 - in the sandbox, where tmux has its sockets
_ELSEWHERE = ("TMUX", "TMUX_TMPDIR")
"""Variables with which tmux looks for its server elsewhere."""


@dataclass(frozen=True, slots=True)
class _Server:
    """A server that has told its version."""

    socket: SocketHandle
    account: Account


class TerminalLine:
    """The way to the tmux servers of one sandbox's agent, one for each user."""

    def __init__(self, pod: Pod) -> None:
        self._pod = pod
        self._given_up = not pod.is_reached_by_sockets
        self._servers: dict[str, _Server] = {}
        self.answers = 0

    async def run(
        self, command: str, call: Call, of_kit: bool, timeout_sec: float | None, listener: Listener | None
    ) -> Ended | None:
        """``None`` if the command has to be run. ``of_kit`` tells whose tmux it would be. Raises ``TimeoutError``, and
        what ``Pod.check`` does."""
        if self._given_up or (words := plain_words(command)) is None:
            return None
        if any(call.environment.get(name) for name in _ELSEWHERE):
            return None
        self._pod.check("agent")
        try:
            async with asyncio.timeout(timeout_sec or None):
                answer = await self._ask(call, of_kit, words, listener)
        except NotUnderstood:
            self.close()
            return None
        self.answers += answer is not None
        return answer

    def close(self) -> None:
        """From now on everything is run."""
        self._given_up = True
        for user in list(self._servers):
            self._forget(user)

    async def _ask(self, call: Call, of_kit: bool, words: list[str], listener: Listener | None) -> Ended | None:
        """``None`` if there is no server."""
        user = str(call.user)
        try:
            known = self._servers.get(user) or await self._found(call, of_kit)
            client = self._client(call, known.account, of_kit)
            with known.socket.connected() as server:
                return await ask(server, client, words, listener)
        except OSError as error:
            self._forget(user)  # another server may come, of another version
            if error.errno not in (errno.ENOENT, errno.ECONNREFUSED):
                raise NotUnderstood(str(error)) from error
            return None

    async def _found(self, call: Call, of_kit: bool) -> _Server:
        view, user = self._pod.view("agent"), str(call.user)
        account = await view.start(Transfer.account, call.user)
        handle = await view.start(Transfer.socket, f"{_PLACE}/tmux-{account.uid}/default")
        self._forget(user)
        self._servers[user] = found = _Server(handle, account)
        with handle.connected() as server:
            if not is_known_version(await ask(server, self._client(call, account, of_kit), VERSION_QUESTION)):
                raise NotUnderstood("this version of tmux is not known")
        return found

    def _client(self, call: Call, account: Account, of_kit: bool) -> Client:
        return Client.of(self._pod.environment(call, account), call.cwd, always_utf8=of_kit)

    def _forget(self, user: str) -> None:
        if (known := self._servers.pop(user, None)) is not None:
            known.socket.close()
