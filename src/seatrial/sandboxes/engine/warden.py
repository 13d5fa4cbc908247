"""The container beside a docker sandbox that may do what the sandbox must not: end commands, and grade.

``docker`` makes one when it first needs it. It shares the sandbox's processes and network, runs programs of its own
image only, and has two capabilities more than Docker gives by default: SYS_ADMIN to mount and to enter namespaces,
SYS_PTRACE to see whose process is whose.

*Grading* happens in a mount namespace copied from the sandbox's, where ``/tests`` and ``/logs`` are fresh. What the
agent left running cannot reach it:

- Nothing is mounted there on a directory that the agent could remove or rename: in the sandbox, ``/tests`` and
  ``/logs`` are mount points themselves (see ``docker``).
- ``/proc/<pid>/root`` opens only between processes of which the second has no capability that the first lacks. The
  verifier has AUDIT_WRITE, also when it is not root, and the agent never has it.

The verifier itself runs with what Docker gives by default. Before that, in the sandbox's file system, only a static
program runs: the loader of any other one would obey the ``/etc/ld.so.preload`` that the agent wrote.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from seatrial.errors import SandboxFault
from seatrial.sandboxes.engine.client import Conversation, EngineClient, EngineRefused
from seatrial.sandboxes.engine.command import MARK, Ended, EngineCommands, Listener, Order
from seatrial.sandboxes.engine.local_view import LocalView, Residence
from seatrial.sandboxes.engine.seccomp import warden_profile
from seatrial.sandboxes.engine.tools import BUSYBOX, ensure_tools
from seatrial.sandboxes.pods.accounts import Account
from seatrial.sandboxes.pods.container_spec import DEFAULT_PATH, DOCKER_CAPABILITIES

SEAL = "AUDIT_WRITE"
"""The capability that the verifier has and the agent has not."""
_CAPABILITIES = tuple(name.removeprefix("CAP_") for name in DOCKER_CAPABILITIES)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PREFIX = "SEATRIAL_V_"
_ROOT = Account(0, 0, (0,), "/root")
_KILL_SEC = 20.0
_PREPARE_SEC = 60.0
_FORGOTTEN = 2147483647

# Every process of the command has it as an ancestor, or is in its session or in that of one of its processes.
_KILL = rf"""
known=
quiet=0
round=0
while [ $quiet -lt 2 ] && [ $round -lt 400 ]; do
    round=$((round + 1))
    if [ -z "$known" ]; then
        # The engine's own children have no parent in here.
        for status in $({BUSYBOX} grep -l '^PPid:[^0-9]*0$' /proc/[0-9]*/status 2>/dev/null); do
            {BUSYBOX} tr '\0' '\n' < "${{status%status}}environ" 2>/dev/null | {BUSYBOX} grep -qxF "{MARK}=$1" &&
                known="$known ${{status//[!0-9]/}}"
        done
        # The engine may be about to start it.
        [ -n "$known" ] || {{ [ $round -gt 10 ] && exit 0; {BUSYBOX} usleep 50000; continue; }}
    fi
    family=$({BUSYBOX} cat /proc/[0-9]*/status 2>/dev/null | {BUSYBOX} awk -v "known=$known" '
        BEGIN {{ count = split(known, list, " "); for (i = 1; i <= count; i++) is[list[i]] = 1 }}
        /^State:/ {{ dead = ($2 == "Z" || $2 == "X") }}
        /^Pid:/ {{ pid = $2 }}
        /^PPid:/ {{ parent[pid] = $2; alive[pid] = !dead }}
        /^NSsid:/ {{ session[pid] = $NF }}
        END {{
            do {{
                more = 0
                for (p in parent) if (!(p in is) && ((parent[p] in is) || (session[p] in is))) {{ is[p] = 1; more = 1 }}
            }} while (more)
            for (p in is) if (alive[p] && p > 1) printf "%s ", p
        }}')
    if [ -n "$family" ]; then
        known="$known $family"
        kill -9 $family 2>/dev/null
        quiet=0
    else
        quiet=$((quiet + 1))
    fi
done
[ $round -lt 400 ]
"""

# Runs in the copied mount namespace, with nothing of the sandbox's files but as mount points and as sources of binds.
_PREPARE = f"""
set -e
tool=/proc/self/fd/8{BUSYBOX}
cd /logs
$tool mount -t tmpfs -o mode=755,nosuid,nodev tests /tests
$tool mount -t tmpfs -o mode=755,nosuid,nodev logs /logs
for entry in * .[!.]*; do
    [ "$entry" != verifier ] && [ -e "./$entry" ] && [ ! -L "./$entry" ] || continue
    if [ -d "./$entry" ]; then $tool mkdir "/logs/$entry"; else : > "/logs/$entry"; fi
    $tool mount -o bind "./$entry" "/logs/$entry"
done
$tool mkdir -m 777 /logs/verifier
cd /
$tool sleep {_FORGOTTEN} <&- >&- 2>&- &
echo $!
"""

_ENTER = f"""
exec 8< /
export PATH=/proc/self/fd/8/bin
exec {BUSYBOX} nsenter -t 1 -m -u -- /proc/self/fd/8{BUSYBOX} unshare -m -- /proc/self/fd/8{BUSYBOX} sh -c "$1"
"""

_WAIT = [BUSYBOX, "sleep", str(_FORGOTTEN)]
# A warden that is made for grading prepares it as it starts, which saves the engine a command.
_PREPARE_AND_WAIT = [
    *(BUSYBOX, "sh", "-c"),
    f'{BUSYBOX} sh -c "$1" sh "$2" || echo failed; exec {BUSYBOX} sleep {_FORGOTTEN} <&- >&- 2>&-',
    *("sh", _ENTER, _PREPARE),
]

# From the warden's privileges to the verifier's. What is needed to enter the sandbox's namespaces is kept in the
# inheritable set, which survives the loss of the bounding set, and given up by a static program after that.
_ENTERS = ("sys_admin", "sys_chroot", "sys_ptrace")
_DROP = f"""
exec 8< /
here=/proc/self/fd/8 holder=$1 user=$2 group=$3 groups=$4 ambient=$5
shift 5
drop="/lib/ld.so --library-path /lib /bin/setpriv"
exec $drop --inh-caps=-all,{",".join(f"+{name}" for name in _ENTERS)},+{SEAL.lower()} -- \\
    $drop --reuid="$user" --regid="$group" $groups --no-new-privs --ambient-caps=-all$ambient \\
    --bounding-set=-all,{",".join(f"+{name.lower()}" for name in _CAPABILITIES)} -- \\
    {BUSYBOX} nsenter -t "$holder" -m -u -- \\
    $here{BUSYBOX} setpriv --inh-caps {",".join(f"-{name}" for name in _ENTERS)} -- "$@"
"""

# The verifier's own environment is put on last, by the sandbox's own shell: no privileged program may be led by it.
_DRESS = f"""exec 8<&-
for name in $SEATRIAL_NAMES; do value={_PREFIX}$name; export "$name=${{!value}}"; unset "$value"; done
unset SEATRIAL_NAMES name value
cd -- "$1" || exit 126
exec bash -c "$2"
"""


@dataclass(frozen=True, slots=True)
class Ward:
    """The sandbox that a warden is for."""

    container: str
    limits: Mapping[str, Any]
    labels: Mapping[str, str]
    residence: Residence | None = None
    """Where the sandbox can be entered without the engine."""


class Warden:
    """One warden, from its first use to ``remove``."""

    def __init__(self, client: EngineClient, ward: Ward) -> None:
        self._client = client
        self._ward = ward
        self._starting = asyncio.Lock()
        self._container: str | None = None
        self._id = ""
        self._holder: int | None = None
        self.view: LocalView | None = None
        """What the verifier sees, while grading goes on and where it can be had without the engine."""

    async def kill(self, mark: str) -> None:
        """Ends a command and what belongs to it. A process that has made itself a service stays."""
        commands = await self._commands()
        async with asyncio.timeout(_KILL_SEC):
            ended = await commands.run(Order([BUSYBOX, "sh", "-c", _KILL, "sh", mark]))
        if ended.return_code:
            raise SandboxFault(f"A command could not be ended. {ended.stderr.strip()}".strip())

    async def begin_grading(self) -> None:
        """Makes the verifier's view of the sandbox."""
        async with self._starting:
            prepared = await self._start_grading() if self._container is None else None
        if prepared is None:
            commands = await self._commands()
            prepared = await commands.run(Order([BUSYBOX, "sh", "-c", _ENTER, "sh", _PREPARE]))
        if prepared.return_code or not prepared.stdout.strip().isdigit():
            raise SandboxFault(f"The verifier's view could not be made: {(prepared.stderr or prepared.stdout).strip()}")
        self._holder = int(prepared.stdout)
        if self._ward.residence is not None:
            self.view = self._ward.residence.view_of(self._holder, self._id)

    async def run(
        self, command: str, env: Mapping[str, str], cwd: str, account: Account, mark: str, listener: Listener | None
    ) -> Ended:
        """A command of the verifier."""
        argv = ["bash", "-c", _DRESS, "bash", cwd, command]
        return await self._as(account, argv, {**_covered(env), MARK: mark}, listener=listener)

    async def is_directory(self, path: str) -> bool:
        return (await self._tool('[ -d "$1" ]', path)).return_code == 0

    async def put(self, target: str, archive: AsyncIterator[bytes]) -> None:
        """Unpacks an archive into a directory of the verifier's view."""
        script = 'tool=$0; $tool mkdir -p "$1" && exec $tool tar -x -f - -C "$1"'
        ended = await self._tool(script, target, input=archive)
        if ended.return_code:
            raise SandboxFault(f"Files could not be put into {target}: {ended.stderr.strip()}")

    async def get(self, source: str, take: Callable[[bytes], Awaitable[None]], *, tree: bool) -> None:
        """Packs a file, or a directory's content, of the verifier's view. ``FileNotFoundError`` if it is not there."""
        script = 'tool=$0; [ -d "$1" ] || exit 66; cd "$1" && exec $tool tar -c -f - .'
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
        """Ends everything that ran in it."""
        async with self._starting:
            container, self._container, self._holder = self._container, None, None
            if self.view is not None:
                view, self.view = self.view, None
                view.close()
            if container is not None:
                await remove_container(self._client, container)

    async def _tool(
        self,
        script: str,
        path: str,
        *,
        input: AsyncIterator[bytes] | None = None,
        take: Callable[[bytes], Awaitable[None]] | None = None,
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
        take: Callable[[bytes], Awaitable[None]] | None = None,
    ) -> Ended:
        if self._holder is None:
            raise SandboxFault("Grading has not begun.")
        groups = f"--groups={','.join(map(str, account.groups))}" if account.groups else "--clear-groups"
        # Root has the bounding set whenever a program starts; others have what is ambient.
        ambient = "" if account.uid == 0 else "".join(f",+{name}" for name in (*_ENTERS, SEAL.lower()))
        words = [str(self._holder), str(account.uid), str(account.gid), groups, ambient, *argv]
        commands = await self._commands()
        order = Order([BUSYBOX, "sh", "-c", _DROP, "sh", *words], env, input=input, take=take)
        return await commands.run(order, listener)

    async def _commands(self) -> EngineCommands:
        async with self._starting:
            if self._container is None:
                self._container = await self._start()
            return EngineCommands(self._client, self._container)

    async def _start(self) -> str:
        async with self._created(_WAIT) as name:
            await self._client.post(f"/containers/{name}/start")
        return name

    async def _start_grading(self) -> Ended:
        async with self._created(_PREPARE_AND_WAIT) as name, self._client.attachment(name) as line:
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
        """A warden's container that is removed if it cannot be started."""
        image = await ensure_tools(self._client)
        name = f"seatrial-warden-{uuid.uuid4().hex[:12]}"
        made = await self._client.post("/containers/create", self._description(image, command), name=name)
        self._id = made["Id"]
        try:
            yield name
        except BaseException:
            await asyncio.shield(remove_container(self._client, name))
            raise

    def _description(self, image: str, command: list[str]) -> dict[str, Any]:
        shared = f"container:{self._ward.container}"
        return {
            "Image": image,
            "Cmd": command,
            "Env": [f"PATH={DEFAULT_PATH}"],
            "Labels": dict(self._ward.labels),
            "HostConfig": {
                **self._ward.limits,
                "PidMode": shared,
                "NetworkMode": shared,
                "IpcMode": shared,
                "CapDrop": ["ALL"],
                "CapAdd": [*_CAPABILITIES, "SYS_ADMIN", "SYS_PTRACE"],
                "SecurityOpt": [f"seccomp={warden_profile()}", "apparmor=unconfined", "label=disable"],
                "ReadonlyRootfs": True,
                "LogConfig": {"Type": "none"},
            },
        }


async def remove_container(client: EngineClient, container: str) -> None:
    """Takes a container away with its anonymous volumes; one that is gone already is fine."""
    try:
        await client.delete(f"/containers/{container}", force=True, v=True)
    except EngineRefused as error:
        if error.status not in (404, 409):  # 409: somebody else is removing it at this moment
            raise


async def _first_line(line: Conversation) -> Ended:
    """What a process says first, or that it ended without a word."""
    said = {False: b"", True: b""}
    async for piece in line.pieces():
        said[piece.error] += piece.data
        if b"\n" in said[False]:
            return Ended(0, said[False].decode(errors="replace"), said[True].decode(errors="replace"))
    return Ended(1, said[False].decode(errors="replace"), said[True].decode(errors="replace"))


def _covered(env: Mapping[str, str]) -> dict[str, str]:
    """Under names that no program on the way looks at. What has no proper name no program looks at anyway."""
    names = [name for name in env if _NAME.fullmatch(name)]
    covered = {f"{_PREFIX}{name}": env[name] for name in names}
    odd = {name: value for name, value in env.items() if not _NAME.fullmatch(name)}
    return {"PATH": env.get("PATH", DEFAULT_PATH), "SEATRIAL_NAMES": " ".join(names), **odd, **covered}
