"""What happens to a machine after its worker has left: called once, after the worker has ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from seatrial.errors import ProtectionRefused, ServiceUnavailable
from seatrial.ports.platform import Departure

log = logging.getLogger(__name__)

_TRIES = 5
_FIRST_PAUSE_SEC = 1.0


async def depart(
    departure: Departure,
    *,
    idle: bool,
    noticed: bool,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Ends the machine after an idle leave, or says that it has drained after a notice.

    Raises ``ServiceUnavailable`` if the platform does not answer: the worker then ends with an error, and the one that
    is started in its place leaves later."""
    if idle:
        await _insist("end this machine", departure.end_machine, sleep)
    elif noticed:
        await _insist("say that this machine has drained", departure.drained, sleep)


async def _insist(what: str, step: Callable[[], Awaitable[None]], sleep: Callable[[float], Awaitable[None]]) -> None:
    pause = _FIRST_PAUSE_SEC
    for number in range(1, _TRIES + 1):
        try:
            return await step()
        except ProtectionRefused as gone:  # the platform does not know this machine any more
            log.warning("Could not %s: %s", what, gone)
            return None
        except ServiceUnavailable as fault:
            log.warning("Could not %s (try %d of %d): %s", what, number, _TRIES, fault)
            if number == _TRIES:
                raise
        await sleep(pause)
        pause *= 2
    return None
