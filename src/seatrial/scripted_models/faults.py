"""Errors of scripted models, and plans that assign errors to calls.

A plan is called once per request, with the number of the call and the seconds since the server started; it returns an
error or ``None``. Plans are seeded, so failures are reproducible.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Literal

from seatrial.domain.frozen import Frozen

FaultKind = Literal["rate_limit", "server_error", "hang", "cut", "garbage", "context_length", "auth", "refused"]


class Fault(Frozen):
    """One kind of failing call."""

    kind: FaultKind
    status: int = 500
    """HTTP status of a ``server_error``."""
    retry_after_sec: float | None = None
    """``Retry-After`` of a ``rate_limit`` or ``server_error``."""
    retry_after_form: Literal["seconds", "date"] = "seconds"
    hang_sec: float = 3600.0
    """How long a ``hang`` is silent before the connection is closed."""


FaultPlan = Callable[[int, float], Fault | None]


def never(call: int, at: float) -> Fault | None:
    """No errors."""
    return None


def first(faults: Sequence[Fault | None]) -> FaultPlan:
    """The given errors for the first calls, one each, then none."""
    return lambda call, at: faults[call] if call < len(faults) else None


def always(fault: Fault) -> FaultPlan:
    return lambda call, at: fault


def share(part: float, faults: Sequence[Fault], *, seconds: float, seed: int) -> FaultPlan:
    """For the first ``seconds``, a seeded ``part`` of the calls gets one of ``faults``; later calls get none."""
    chance = random.Random(seed)  # noqa: S311 - a reproducible plan, not a secret

    def plan(call: int, at: float) -> Fault | None:
        if at >= seconds or chance.random() >= part:
            return None
        return chance.choice(faults)

    return plan
