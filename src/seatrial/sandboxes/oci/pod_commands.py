"""Commands of one pod, from the event loop's side: started in a thread, waited for without one, ended with theirs.

``oci`` runs every command through this. What a command left in the background keeps its pipes; they are emptied here
until the sandbox ends, so that nobody who writes to them blocks or dies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from seatrial.sandboxes.host.private_mounts import PrivateMounts
from seatrial.sandboxes.oci.command import Command, Ended
from seatrial.sandboxes.oci.pod import Call, Pod
from seatrial.sandboxes.output import Listener

Listeners = tuple[Listener | None, Listener | None]
"""For standard output and standard error."""


class PodCommands:
    def __init__(self, mounts: PrivateMounts, pod: Pod) -> None:
        self._mounts = mounts
        self._pod = pod
        self._services: list[Command] = []
        self._behind: set[asyncio.Future[None]] = set()

    async def run(self, view: str, call: Call, timeout_sec: float | None, listeners: Listeners) -> Ended:
        """``TimeoutError`` when the time is up. Then, and when cancelled, the command is gone with its family."""
        running = await self._spawn(view, call)
        try:
            running.listen(*listeners)
            async with asyncio.timeout(timeout_sec or None):
                return await running.wait()
        except (TimeoutError, asyncio.CancelledError):
            await self._kill(view, running)
            raise
        finally:
            self._dismiss(running)

    async def serve(self, call: Call) -> None:
        """Starts a command that goes on in the background, its output unread."""
        service = await self._spawn("agent", call)
        service.listen(None, None)
        service.forget()
        self._services.append(service)

    def do_behind(self, work: Awaitable[None]) -> None:
        """Has something done that nobody waits for before the end."""
        self._keep(asyncio.ensure_future(work))

    async def close(self) -> None:
        """Once the pod has ended."""
        for service in self._services:
            await service.gone()
            self._dismiss(service)
        self._services.clear()
        for task in list(self._behind):
            task.cancel()
        await asyncio.gather(*self._behind, return_exceptions=True)

    async def _spawn(self, view: str, call: Call) -> Command:
        spawning = asyncio.ensure_future(self._mounts.start(self._pod.spawn, view, call))
        try:
            return await asyncio.shield(spawning)
        except asyncio.CancelledError:
            (started,) = await asyncio.gather(spawning, return_exceptions=True)
            if isinstance(started, Command):
                started.listen(None, None)
                await self._kill(view, started)
                self._dismiss(started)
            raise

    async def _kill(self, view: str, running: Command) -> None:
        await asyncio.shield(self._mounts.carry(self._pod.kill_command, view, running))
        await running.gone()

    def _dismiss(self, running: Command) -> None:
        running.forget()
        for drain in running.lingering:
            self._keep(drain)
        running.close()

    def _keep(self, task: asyncio.Future[None]) -> None:
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)
