"""How long calls wait for a model's service that is busy or broken, and how the service behaved during a trial.

``gateway`` waits for all agents whose calls pass it, ``agents.model_retries`` for those that call a provider directly.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from seatrial.domain.frozen import Frozen
from seatrial.errors import ModelFault


class RetryLimits(Frozen):
    """Time limits of model calls and of their retries."""

    limit_sec: float = 600.0
    """Seconds from the first failure of a call. If the next wait would exceed it, the call fails."""
    request_timeout_sec: float = 600.0
    """Timeout of one request."""
    first_wait_sec: float = 1.0
    longest_wait_sec: float = 60.0
    """Maximum backoff; a longer ``Retry-After`` is obeyed if it fits the limit."""
    unknown_tries: int = 3
    """Requests of a call that fails with errors of unknown kind: our own request may be wrong."""

    def wait(self, failures: int, chance: random.Random) -> float:
        """Doubles with each failure; the jitter keeps many trials from retrying at the same moment."""
        whole = min(self.first_wait_sec * 2.0 ** min(failures - 1, 60), self.longest_wait_sec)
        return whole * chance.uniform(0.5, 1.0)


@dataclass
class ModelHealth:
    """How the model's service behaved during one trial."""

    calls: int = 0
    """Answers that the agent requested."""
    requests: int = 0
    """Requests sent for them; more than ``calls`` if some failed."""
    faults: Counter[str] = field(default_factory=Counter)
    """Failed requests by the name of their exception."""
    lost_sec: float = 0.0
    """Seconds spent on failed requests and on waiting after them."""
    pace_wait_sec: float = 0.0
    """Seconds spent waiting for a turn, because the provider limits the pace. Not in ``lost_sec`` if the agent's clock
    stood still meanwhile."""
    waited_sec: float = 0.0
    """Seconds in which the agent waited for answers, failed requests included."""
    given_up: ModelFault | None = None
    interrupted: str | None = None
    """The service's error when the agent's time ran out."""

    def spoils_timeout(self, agent_sec: float) -> str | None:
        """Why an agent's timeout is not its own fault; ``None`` if it is.

        If a tenth of its time was lost to the service, the result does not count as a failure of the agent.
        """
        if self.interrupted is not None:
            return self.interrupted
        if agent_sec > 0 and self.lost_sec >= agent_sec / 10:
            return f"{self.lost_sec:.0f} of {agent_sec:.0f} seconds were lost to errors of the model's service"
        return None


def seconds_asked(value: str, now: datetime) -> float | None:
    """The seconds of a ``Retry-After``, which is a number or a date; ``None`` if it is neither."""
    with suppress(ValueError):
        seconds = float(value)
        return None if math.isnan(seconds) else max(seconds, 0.0)
    try:
        then = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max((then.replace(tzinfo=then.tzinfo or UTC) - now).total_seconds(), 0.0)
