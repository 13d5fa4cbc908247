"""``seatrial fleet``: the numbers that autoscalers follow."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from seatrial.cli.commands.catalogue import told_by_service
from seatrial.cli.options import AsJson
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.shapes.operations import FleetState


def fleet(as_json: AsJson = False) -> None:
    """Show how many machines the queued and running trials fill, as autoscalers see it."""
    from seatrial.cli.backend.session import print_json

    state = told_by_service(lambda client: client.installation.fleet()) or asyncio.run(_here())
    if as_json:
        print_json(state.model_dump(mode="json"))
        return
    say(f"{state.queued} queued and {state.running} running trials fill {state.work_units:g} machines")
    say(f"desired: {state.desired_workers} machines; now: {state.workers} workers that claim trials")
    if state.queued:
        say(f"the oldest queued trial was created {state.queue_oldest_seconds:.0f} s ago")
    say(f"one machine: {state.machine_cpus:g} CPUs, {state.machine_memory_mb / 1024:.3g} GB")


async def _here() -> FleetState:
    from seatrial.cli.backend.session import open_session
    from seatrial.shapes.operations import FleetState
    from seatrial.wiring import fleet_signals

    async with open_session() as installation:
        return FleetState.of(await fleet_signals(installation).look())
