"""An image store that counts its builds."""

from __future__ import annotations

from seatrial.sandboxes.docker.images import EngineStore
from seatrial.sandboxes.images.image import BuildPlan, Image, LogSink


class CountingStore(EngineStore):
    """The real store, counting."""

    builds = 0

    async def build(self, plan: BuildPlan, log: LogSink) -> Image:
        self.builds += 1
        return await super().build(plan, log)
