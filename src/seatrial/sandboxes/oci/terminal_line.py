"""Plain tmux commands of an agent, answered by the tmux server in its sandbox without a process for each.

terminus-2 runs some twenty tmux commands in a short trial. Each would be a runtime, a shell and tmux's client, which
does nothing but to pass its arguments on to the server. ``terminal.tmux_client`` does that from here. Whatever is not
plain goes the usual way, and so does everything for good once a server was not understood.
"""

from __future__ import annotations

import asyncio
import errno
import socket

from seatrial.sandboxes.host.accounts import Account
from seatrial.sandboxes.host.transfer import Transfer
from seatrial.sandboxes.host.view import SandboxView
from seatrial.sandboxes.oci.pod import Call, Pod
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


class TerminalLine:
    """The way to the tmux servers of one sandbox's agent, one for each user."""

    def __init__(self, pod: Pod) -> None:
        self._pod = pod
        self._given_up = not pod.is_reached_by_sockets
        self.answers = 0
        self._known: dict[str, Account] = {}
        """Users whose server has told its version."""

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
                account = await self._account(call.user)
                client = Client.of(self._pod.environment(call, account), call.cwd, always_utf8=of_kit)
                if (server := await self._known_server(str(call.user), account, client)) is None:
                    return None
                with server:
                    answer = await ask(server, client, words, listener)
                    self.answers += 1
                    return answer
        except NotUnderstood:
            self._given_up = True
            return None

    async def _account(self, user: str | int | None) -> Account:
        known = self._known.get(str(user))
        return known if known is not None else await self._view.start(Transfer.account, user)

    async def _known_server(self, user: str, account: Account, client: Client) -> socket.socket | None:
        """A connection to a server that has told its version; ``None`` if there is no server."""
        if user not in self._known:
            if (asked := await self._connect(account)) is None:
                return None
            with asked:
                if not is_known_version(await ask(asked, client, VERSION_QUESTION)):
                    raise NotUnderstood("this version of tmux is not known")
            self._known[user] = account
        if (server := await self._connect(account)) is None:
            self._known.pop(user, None)  # another server may come, of another version
        return server

    async def _connect(self, account: Account) -> socket.socket | None:
        try:
            return await self._view.start(Transfer.connect, f"{_PLACE}/tmux-{account.uid}/default")
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ECONNREFUSED):
                return None
            raise NotUnderstood(str(error)) from error

    @property
    def _view(self) -> SandboxView:
        return self._pod.view("agent")
