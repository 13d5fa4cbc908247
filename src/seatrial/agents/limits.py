"""Tells an agent what it may still use: time and budget.

The variable ``SEATRIAL_DEADLINE`` has the moment at which the agent will be stopped, as it was known when the agent
began: ISO 8601 in UTC, such as ``2026-11-16T19:02:00Z``. Time in which an agent waits for others moves the deadline
later, never earlier. The file that ``SEATRIAL_LIMITS`` names is rewritten every few seconds. Both are there for every
agent that may have a model, whether it runs in the sandbox or on the host; one on the host sees them through its
terminal. If the job asks for it, the instruction says it as well.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from seatrial.domain.model_calls.budget import WITHOUT_CAP, Amount
from seatrial.domain.model_calls.limits_left import LimitsLeft
from seatrial.engine.clock import system_clock
from seatrial.engine.duties import Duties
from seatrial.sandboxes.own_time import OwnTime, own_limit
from seatrial.sandboxes.sandbox import Sandbox

log = logging.getLogger(__name__)

DEADLINE = "SEATRIAL_DEADLINE"
LIMITS = "SEATRIAL_LIMITS"
PLACE = PurePosixPath("/opt/seatrial/limits/limits.json")
_REFRESH_SEC = 5.0


@dataclass(frozen=True, slots=True)
class TrialLimits:
    """What limits one try."""

    budget_left: Callable[[], Amount] | None = None
    ends_at: datetime | None = None
    """When the whole trial has to be over."""
    agent_limit_sec: float | None = None
    """For a trial that has no clock of its own."""
    in_instruction: bool = False
    refresh_sec: float = _REFRESH_SEC


def tell_limits(agent: Any, limits: TrialLimits) -> None:
    """Makes the agent's ``run`` tell what is left while it runs."""
    run = agent.run

    async def told(instruction: str, environment: Any, context: Any) -> None:
        left = _counter(limits)
        first = left()
        async with _posted(environment, left, limits.refresh_sec) as is_there:
            if limits.in_instruction and (said := first.sentences(str(PLACE) if is_there else "")):
                instruction = f"{instruction.rstrip()}\n\n{said}\n"
            variables = {DEADLINE: first.deadline or "", LIMITS: str(PLACE) if is_there else ""}
            variables = {name: value for name, value in variables.items() if value}
            with environment.scoped_exec_env(variables):
                await run(instruction=instruction, environment=environment, context=context)

    agent.run = told


def _counter(limits: TrialLimits) -> Callable[[], LimitsLeft]:
    """Counts from now on, by the clock of the calling task."""
    clock, began = own_limit(), datetime.now(UTC)

    def left() -> LimitsLeft:
        now = datetime.now(UTC)
        ends = [] if limits.ends_at is None else [(limits.ends_at - now).total_seconds()]
        own = _own_seconds(clock, limits.agent_limit_sec, (now - began).total_seconds())
        seconds = min([*ends, *([own] if own is not None else [])], default=None)
        return LimitsLeft.of(now, seconds, limits.budget_left() if limits.budget_left is not None else WITHOUT_CAP)

    return left


def _own_seconds(clock: OwnTime | None, limit_sec: float | None, since: float) -> float | None:
    if clock is not None:
        return clock.left_sec
    return None if limit_sec is None else limit_sec - since


@asynccontextmanager
async def _posted(environment: Any, left: Callable[[], LimitsLeft], refresh_sec: float) -> AsyncIterator[bool]:
    """Keeps the file in the sandbox up to date while the block runs. Gives whether it is there: an image may have
    something else in its place, which must not end a trial."""
    try:
        await _post(environment, left())
    except Exception as fault:
        log.warning("The limits of an agent could not be shown in its sandbox: %r", fault)
        yield False
        return
    # In a context of its own: its transfers do not stop the agent's clock.
    refresh = Duties(system_clock).forever("limits file", lambda: _post(environment, left()), refresh_sec, later=True)
    refreshing = asyncio.create_task(refresh, context=contextvars.Context())
    try:
        yield True
    finally:
        refreshing.cancel()
        with suppress(asyncio.CancelledError):
            await refreshing


async def _post(environment: Any, left: LimitsLeft) -> None:
    content = json.dumps(left.document(), indent=2).encode() + b"\n"
    if isinstance(environment, Sandbox):
        await environment.post(str(PLACE), content)
        return
    with TemporaryDirectory() as folder:
        source = Path(folder) / PLACE.name
        source.write_bytes(content)
        await environment.upload_file(source, str(PLACE))
