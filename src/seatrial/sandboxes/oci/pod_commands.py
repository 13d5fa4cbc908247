"""Commands of one pod on the event loop: started in a thread, waited for without one.

``oci`` runs every command through this. Processes that a command left in the background keep its pipes. The pipes are
read here until the sandbox ends, so that no writer blocks or dies.
"""

from __future__ import annotations

import asyncio

from seatrial.sandboxes.host.private_mounts import PrivateMounts
from seatrial.sandboxes.oci.command import Call, Command
from seatrial.sandboxes.oci.pod import Pod
from seatrial.sandboxes.output import Ended, Listener


class PodCommands:
    def __init__(self, mounts: PrivateMounts, pod: Pod) -> None:
        self._mounts = mounts
        self._pod = pod
        self._services: list[Command] = []
        self._draining: set[asyncio.Task[None]] = set()

    async def run(self, view: str, call: Call, timeout_sec: float | None, listener: Listener | None) -> Ended:
        """Raises ``TimeoutError`` when the time is up. Then, and when cancelled, it kills the command and what it
        started."""
        running = await self._spawn(view, call)
        try:
            running.listen(listener)
            async with asyncio.timeout(timeout_sec or None):
                return await running.wait()
        except (TimeoutError, asyncio.CancelledError):
            await self._kill(view, running)
            raise
        finally:
            self._dismiss(running)

    async def serve(self, call: Call) -> None:
        """Starts a command in the background and drops its output."""
        service = await self._spawn("agent", call)
        service.listen()
        service.forget()
        self._services.append(service)

    async def close(self) -> None:
        """Call it once the pod has ended."""
        for service in self._services:
            await service.gone()
            self._dismiss(service)
        self._services.clear()
        for task in list(self._draining):
            task.cancel()
        await asyncio.gather(*self._draining, return_exceptions=True)

    async def _spawn(self, view: str, call: Call) -> Command:
        spawning = asyncio.ensure_future(self._mounts.start(self._pod.spawn, view, call))
        try:
            return await asyncio.shield(spawning)
        except asyncio.CancelledError:
            (started,) = await asyncio.gather(spawning, return_exceptions=True)
            if isinstance(started, Command):
                started.listen()
                await self._kill(view, started)
                self._dismiss(started)
            raise

    async def _kill(self, view: str, running: Command) -> None:
        await asyncio.shield(self._mounts.carry(self._pod.kill_command, view, running))
        await running.gone()

    def _dismiss(self, running: Command) -> None:
        running.forget()
        for drain in running.lingering:
            self._draining.add(drain)
            drain.add_done_callback(self._draining.discard)
        running.close()
