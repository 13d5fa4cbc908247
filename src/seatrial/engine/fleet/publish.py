"""Publishes the signals of autoscalers, by one of all API processes at a time.

A lease in the store decides which one. Its successor takes over after the lease has expired; the metrics are gauges, so
a value that both publish changes no decision.
"""

from __future__ import annotations

from datetime import timedelta

from seatrial.engine.clock import Clock
from seatrial.engine.fleet.signals import FleetSignals, Signals
from seatrial.ports.signals import SignalSink
from seatrial.ports.store import DutyStore

_DUTY = "publish signals"
_LEASE_STEPS = 2.5
"""A process that misses two publications loses the duty."""


class Publisher:
    def __init__(
        self, signals: FleetSignals, sink: SignalSink, duties: DutyStore, clock: Clock, process: str, every_sec: float
    ) -> None:
        self._signals = signals
        self._sink = sink
        self._duties = duties
        self._clock = clock
        self._process = process
        self._lease = timedelta(seconds=_LEASE_STEPS * every_sec)

    async def step(self) -> bool:
        """Whether this process published. Raises what the store or the sink raise; the caller's duty goes on."""
        if not await self._duties.take(_DUTY, self._process, self._lease, self._clock()):
            return False
        try:
            await self._sink.publish(values_of(await self._signals.look()))
        except Exception:  # perhaps only this process cannot publish; another one may try
            await self._duties.take(_DUTY, self._process, timedelta(0), self._clock())
            raise
        return True


def values_of(signals: Signals) -> dict[str, float]:
    """The same names as in ``/metrics``."""
    return {
        "seatrial_work_units": signals.work_units,
        "seatrial_desired_workers": float(signals.desired_workers),
        "seatrial_queue_oldest_seconds": signals.queue_oldest_seconds,
        "seatrial_workers": float(signals.workers),
    }
