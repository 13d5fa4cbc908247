"""The privileged container beside a docker sandbox, which ends commands and grades.

``sandbox_container`` makes one when it first needs it. It shares the sandbox's processes and network, runs programs of
its own image only, and has two capabilities more than Docker's default: SYS_ADMIN to mount and to enter namespaces,
SYS_PTRACE to see the environment of processes.

*Grading* happens in a mount namespace copied from the sandbox's, where ``/tests`` and ``/logs`` are fresh. What the
agent left running cannot reach it:

- Nothing is mounted there on a directory that the agent could remove or rename: in the sandbox, ``/tests`` and
  ``/logs`` are mount points themselves (see ``container``).
- ``/proc/<pid>/root`` opens only between processes of which the second has no capability that the first lacks. The
  verifier has AUDIT_WRITE, also when it is not root, and the agent never has it.

The verifier itself runs with what Docker gives by default. Before that, in the sandbox's file system, only a static
program runs: the loader of any other one would obey the ``/etc/ld.so.preload`` that the agent wrote.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from seatrial.errors import SandboxFault
from seatrial.sandboxes.docker.client import Conversation, EngineClient, EngineRefused
from seatrial.sandboxes.docker.command import MARK, EngineCommands, Order, Take
from seatrial.sandboxes.docker.container import Container
from seatrial.sandboxes.docker.sidecar_scripts import (
    ALL_ROUNDS,
    CAPABILITIES,
    DRESS,
    DROP,
    ENTER,
    ENTERS,
    FEW_ROUNDS,
    KILL,
    KILL_ALL,
    PREFIX,
    PREPARE,
    PREPARE_AND_WAIT,
    SEAL,
    WAIT,
)
from seatrial.sandboxes.docker.tools import BUSYBOX, ensure_tools
from seatrial.sandboxes.host.accounts import Account
from seatrial.sandboxes.host.container_defaults import DEFAULT_PATH
from seatrial.sandboxes.host.view import SandboxView
from seatrial.sandboxes.output import Ended, Listener

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ROOT = Account(0, 0, (0,), "/root")
_KILL_SEC = 20.0
_PREPARE_SEC = 60.0


class Sidecar:
    """One sidecar, from its first use to ``remove``."""

    def __init__(self, client: EngineClient, sandbox: Container) -> None:
        self._client = client
        self._sandbox = sandbox
        self._starting = asyncio.Lock()
        self._container: str | None = None
        self._id = ""
        self._holder: int | None = None
        self.view: SandboxView | None = None
        """What the verifier sees, during grading and if it can be entered without the engine."""

    async def kill(self, mark: str) -> None:
        """Ends a command and what belongs to it. A process that detached itself as a service keeps running."""
        try:
            async with asyncio.timeout(_KILL_SEC):
                async with self._paused():  # else the command could still finish while a sidecar is made
                    commands = await self._commands()
                    await commands.run(Order([BUSYBOX, "sh", "-c", KILL, "sh", mark, FEW_ROUNDS]))
                ended = await commands.run(Order([BUSYBOX, "sh", "-c", KILL, "sh", mark, ALL_ROUNDS]))
        except TimeoutError:
            raise SandboxFault(f"A command could not be ended within {_KILL_SEC:g} s.") from None
        if ended.return_code:
            raise SandboxFault(f"A command could not be ended. {ended.stderr.strip()}".strip())

    async def kill_all(self) -> None:
        """Ends every command and what it started, in both views. The sandbox remains."""
        commands = await self._commands()
        async with asyncio.timeout(_KILL_SEC):
            ended = await commands.run(Order([BUSYBOX, "sh", "-c", KILL_ALL, "sh"]))
        if ended.return_code:
            raise SandboxFault(f"The sandbox's processes could not be ended. {ended.stderr.strip()}".strip())

    async def begin_grading(self) -> None:
        """Makes the verifier's view of the sandbox."""
        async with self._starting:
            prepared = await self._start_grading() if self._container is None else None
        if prepared is None:
            commands = await self._commands()
            prepared = await commands.run(Order([BUSYBOX, "sh", "-c", ENTER, "sh", PREPARE]))
        if prepared.return_code or not prepared.stdout.strip().isdigit():
            raise SandboxFault(f"The verifier's view could not be made: {(prepared.stderr or prepared.stdout).strip()}")
        self._holder = int(prepared.stdout)
        if self._sandbox.local is not None:
            self.view = self._sandbox.local.view_of(self._holder, self._id)

    async def run(
        self, command: str, env: Mapping[str, str], cwd: str, account: Account, mark: str, listener: Listener | None
    ) -> Ended:
        """A command of the verifier."""
        argv = ["bash", "-c", DRESS, "bash", cwd, command]
        return await self._as(account, argv, {**_covered(env), MARK: mark}, listener=listener)

    async def is_directory(self, path: str) -> bool:
        return (await self._tool('[ -d "$1" ]', path)).return_code == 0

    async def put(self, target: str, archive: AsyncIterator[bytes]) -> None:
        """Unpacks an archive into a directory of the verifier's view."""
        script = 'tool=$0; $tool mkdir -p "$1" && exec $tool tar -x -f - -C "$1"'
        ended = await self._tool(script, target, input=archive)
        if ended.return_code:
            raise SandboxFault(f"Files could not be put into {target}: {ended.stderr.strip()}")

    async def get(self, source: str, take: Take, *, tree: bool, first: Sequence[str] = ()) -> None:
        """Packs a file, or a directory's content, of the verifier's view. ``FileNotFoundError`` if it is not there."""
        chosen = " ".join(f"./{name}" for name in first)
        script = (
            'tool=$0; [ -d "$1" ] && cd "$1" || exit 66; chosen=;'
            f' for name in {chosen}; do [ -f "$name" ] && chosen="$chosen $name"; done;'
            " exec $tool tar -c -f - $chosen ."
        )
        if not tree:
            script = (
                'tool=$0; [ -f "$1" ] || exit 66; file=$($tool readlink -f "$1") && cd "${file%/*}/"'
                ' && exec $tool tar -c -f - "./${file##*/}"'
            )
        ended = await self._tool(script, source, take=take)
        if ended.return_code == 66:
            raise FileNotFoundError(f"{source} does not exist in the sandbox.")
        if ended.return_code:
            raise SandboxFault(f"{source} could not be read: {ended.stderr.strip()}")

    async def remove(self) -> None:
        """Removes the container and with it all that ran there."""
        async with self._starting:
            container, self._container, self._holder = self._container, None, None
            if self.view is not None:
                view, self.view = self.view, None
                view.close()
            if container is not None:
                await self._client.remove_container(container)

    async def _tool(
        self,
        script: str,
        path: str,
        *,
        input: AsyncIterator[bytes] | None = None,
        take: Take | None = None,
    ) -> Ended:
        tool = f"/proc/self/fd/8{BUSYBOX}"
        return await self._as(_ROOT, [tool, "sh", "-c", script, tool, path], {}, input=input, take=take)

    async def _as(
        self,
        account: Account,
        argv: list[str],
        env: Mapping[str, str],
        *,
        listener: Listener | None = None,
        input: AsyncIterator[bytes] | None = None,
        take: Take | None = None,
    ) -> Ended:
        if self._holder is None:
            raise SandboxFault("Grading has not begun.")
        groups = f"--groups={','.join(map(str, account.groups))}" if account.groups else "--clear-groups"
        # Root has the bounding set whenever a program starts; others have what is ambient.
        ambient = "" if account.uid == 0 else "".join(f",+{name}" for name in (*ENTERS, SEAL.lower()))
        words = [str(self._holder), str(account.uid), str(account.gid), groups, ambient, *argv]
        commands = await self._commands()
        order = Order([BUSYBOX, "sh", "-c", DROP, "sh", *words], env, input=input, take=take)
        return await commands.run(order, listener)

    async def _commands(self) -> EngineCommands:
        async with self._starting:
            if self._container is None:
                self._container = await self._start()
            return EngineCommands(self._client, self._container)

    @asynccontextmanager
    async def _paused(self) -> AsyncIterator[None]:
        """Pauses the sandbox, if the engine can."""
        place = f"/containers/{self._sandbox.name}"
        with suppress(EngineRefused):
            await self._client.post(f"{place}/pause")
        try:
            yield
        finally:
            with suppress(EngineRefused):
                await self._client.post(f"{place}/unpause")

    async def _start(self) -> str:
        async with self._created(WAIT) as name:
            await self._client.post(f"/containers/{name}/start")
        return name

    async def _start_grading(self) -> Ended:
        async with (
            self._created(PREPARE_AND_WAIT) as name,
            self._client.conversation(f"/containers/{name}/attach?stream=1&stdout=1&stderr=1") as line,
        ):
            await self._client.post(f"/containers/{name}/start")
            try:
                async with asyncio.timeout(_PREPARE_SEC):
                    prepared = await _first_line(line)
            except TimeoutError:
                raise SandboxFault("The verifier's view could not be made in time.") from None
        self._container = name
        return prepared

    @asynccontextmanager
    async def _created(self, command: list[str]) -> AsyncIterator[str]:
        """A sidecar's container that is removed if it cannot be started."""
        image = await ensure_tools(self._client)
        name = f"seatrial-sidecar-{uuid.uuid4().hex[:12]}"
        made = await self._client.post("/containers/create", self._description(image, command), name=name)
        self._id = made["Id"]
        try:
            yield name
        except BaseException:
            await asyncio.shield(self._client.remove_container(name))
            raise

    def _description(self, image: str, command: list[str]) -> dict[str, Any]:
        shared = f"container:{self._sandbox.name}"
        return {
            "Image": image,
            "Cmd": command,
            "Env": [f"PATH={DEFAULT_PATH}"],
            "Labels": self._sandbox.labels,
            "HostConfig": {
                **self._sandbox.limits,
                "PidMode": shared,
                "NetworkMode": shared,
                "IpcMode": shared,
                "CapDrop": ["ALL"],
                "CapAdd": [*CAPABILITIES, "SYS_ADMIN", "SYS_PTRACE"],
                "SecurityOpt": [*self._sandbox.profiles.sidecar, "apparmor=unconfined", "label=disable"],
                "ReadonlyRootfs": True,
                "LogConfig": {"Type": "none"},
            },
        }


async def _first_line(line: Conversation) -> Ended:
    """The first line that a process prints; a return code of 1 if it ended without one."""
    said = {"stdout": b"", "stderr": b""}
    async for piece in line.pieces():
        said[piece.stream] += piece.data
        if b"\n" in said["stdout"]:
            break
    code = 0 if b"\n" in said["stdout"] else 1
    return Ended(code, *(text.decode(errors="replace") for text in said.values()))


def _covered(env: Mapping[str, str]) -> dict[str, str]:
    """Renames variables so that no privileged program before the verifier's shell reads them. Names that a shell cannot
    assign stay: no program reads them."""
    names = [name for name in env if _NAME.fullmatch(name)]
    covered = {f"{PREFIX}{name}": env[name] for name in names}
    odd = {name: value for name, value in env.items() if not _NAME.fullmatch(name)}
    return {"PATH": env.get("PATH", DEFAULT_PATH), "SEATRIAL_NAMES": " ".join(names), **odd, **covered}
