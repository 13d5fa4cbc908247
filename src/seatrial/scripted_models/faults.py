"""How a scripted model misbehaves: single faults, and plans that say which call meets which fault.

A plan is asked once for every call, with the call's number and the seconds since the server started; it answers with
a fault or with ``None``. Plans are seeded, so a failing test fails again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Literal

from seatrial.domain.frozen import Frozen

FaultKind = Literal["rate_limit", "server_error", "hang", "cut", "garbage", "context_length", "auth", "refused"]


class Fault(Frozen):
    """One way in which a call goes wrong."""

    kind: FaultKind
    status: int = 500
    """HTTP status of a ``server_error``."""
    retry_after_sec: float | None = None
    """What a ``rate_limit`` or ``server_error`` says about when to come back."""
    retry_after_form: Literal["seconds", "date"] = "seconds"
    hang_sec: float = 3600.0
    """How long a ``hang`` stays silent before the connection is closed."""


FaultPlan = Callable[[int, float], Fault | None]


def never(call: int, at: float) -> Fault | None:
    """Everything works."""
    return None


def first(faults: Sequence[Fault | None]) -> FaultPlan:
    """The given faults for the first calls, one each, and none after them."""
    return lambda call, at: faults[call] if call < len(faults) else None


def always(fault: Fault) -> FaultPlan:
    return lambda call, at: fault


def share(part: float, faults: Sequence[Fault], *, seconds: float, seed: int) -> FaultPlan:
    """For the first ``seconds``, a seeded ``part`` of the calls meets one of ``faults``; afterwards none does."""
    chance = random.Random(seed)  # noqa: S311 - a reproducible plan, not a secret

    def plan(call: int, at: float) -> Fault | None:
        if at >= seconds or chance.random() >= part:
            return None
        return chance.choice(faults)

    return plan
