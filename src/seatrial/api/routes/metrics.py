"""``/metrics`` for Prometheus. ``docs/how-to/operate.md`` explains each number.

Trials are counted by following the event log from the start of this process, so trials of all workers count. Labels
have few values: outcomes, causes, phases, route templates; never a task, an agent, a model or a path.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from seatrial.api.compat.tbench_answers import may_fail
from seatrial.api.context import ServiceDep
from seatrial.api.routes.router import plain_router
from seatrial.domain.event import Event, EventKind
from seatrial.domain.trial import Cause, Outcome, Phase
from seatrial.engine.clock import system_clock
from seatrial.engine.duties import Duties
from seatrial.engine.fleet.signals import Signals
from seatrial.errors import StoreUnavailable
from seatrial.ports.store import EventStore, WorkerRow

log = logging.getLogger(__name__)
router = plain_router("operations")

_TAIL_SEC = 5.0
_BATCH = 500
_PHASE_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600, 1800, 3600, 7200)
_HTTP_BUCKETS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """All metrics in their own registry. One per application."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second line for each counter that nobody reads
        self.registry = CollectorRegistry()
        counter, gauge, histogram = self._counter, self._gauge, self._histogram
        self._queued = gauge("seatrial_queue_depth", "Queued trials that may be claimed now.")
        self._delayed = gauge(
            "seatrial_queue_delayed", "Queued trials that wait before their next try, after an error."
        )
        self._oldest = gauge("seatrial_queue_oldest_seconds", "Age of the oldest queued trial.")
        self._units = gauge("seatrial_work_units", "Queued and running trials, in machine-sized units.")
        self._desired = gauge("seatrial_desired_workers", "Machines for the open work: the units, rounded up.")
        self._running = gauge("seatrial_trials_running", "Running trials.")
        self._workers = gauge("seatrial_workers", "Live workers.", "state")
        self._capacity = gauge("seatrial_worker_capacity", "Trials that the live workers can run at once.")
        self._backlog = gauge("seatrial_backlog_per_worker", "Queued trials per live worker.")
        self._disk = gauge("seatrial_home_free_bytes", "Free bytes on the disk that holds the installation's data.")
        self._created = counter("seatrial_jobs_created", "Jobs submitted.")
        self._ended = counter("seatrial_trials_ended", "Ended trials, by outcome and cause.", "outcome", "cause")
        self._retried = counter(
            "seatrial_trials_retried", "Tries that were followed by another try, by cause.", "cause"
        )
        self._seconds = histogram(
            "seatrial_trial_seconds", "Duration of a trial's last try.", _PHASE_BUCKETS, "outcome"
        )
        self._phases = histogram(
            "seatrial_phase_seconds", "Duration of the phases of every try.", _PHASE_BUCKETS, "phase"
        )
        self._starts = counter("seatrial_sandbox_starts", "Sandboxes started, over all tries.")
        self._calls = counter("seatrial_model_calls", "Model calls, as reported by agents.")
        self._tokens = counter("seatrial_model_tokens", "Model tokens, as reported by agents.", "kind")
        self._cost = counter("seatrial_model_cost_usd", "Model cost in US dollars, as reported by agents.")
        self._requests = counter("seatrial_http_requests", "Requests.", "method", "route", "status")
        self._latency = histogram(
            "seatrial_http_request_seconds", "Requests, without event streams.", _HTTP_BUCKETS, "route"
        )
        self._listeners = gauge("seatrial_event_listeners", "Open event streams.")
        for outcome in Outcome:
            if outcome is not Outcome.ERROR:
                self._ended.labels(outcome, "")
        for cause in Cause:
            self._ended.labels(Outcome.ERROR, cause)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._latency.labels(route).observe(seconds)

    def listening(self, change: int) -> None:
        self._listeners.inc(change)

    def happened(self, event: Event) -> None:
        """Counts one event of the log."""
        match event.kind:
            case EventKind.JOB_CREATED:
                self._created.inc()
            case EventKind.TRIAL_RETRY if event.data.get("why") == "fault":
                self._retried.labels(_known(Cause, event.data.get("cause"))).inc()
                self._spent(event)
            case EventKind.TRIAL_ENDED:
                outcome = _known(Outcome, event.data.get("outcome"))
                self._ended.labels(outcome, _known(Cause, event.data.get("cause"))).inc()
                if (seconds := event.data.get("seconds")) is not None:
                    self._seconds.labels(outcome).observe(seconds)
                self._spent(event)

    def waits(self, signals: Signals, workers: list[WorkerRow], free_bytes: int) -> None:
        """Sets the gauges at the time of the scrape."""
        backlog = signals.backlog
        ready = backlog.queued - backlog.delayed
        self._queued.set(ready)
        self._delayed.set(backlog.delayed)
        self._oldest.set(signals.queue_oldest_seconds)
        self._units.set(signals.work_units)
        self._desired.set(signals.desired_workers)
        self._running.set(backlog.running)
        states = [_state(worker) for worker in workers]
        for state in ("starting", "working", "paused", "draining"):
            self._workers.labels(state).set(states.count(state))
        self._capacity.set(sum(worker.capacity for worker in workers if not worker.draining))
        self._backlog.set(ready / max(len(workers), 1))
        self._disk.set(free_bytes)

    def text(self) -> bytes:
        return generate_latest(self.registry)

    def _spent(self, event: Event) -> None:
        """Usage of one try, whether or not it was the last."""
        phases = event.data.get("phases", {})
        for phase, seconds in phases.items():
            self._phases.labels(_known(Phase, phase)).observe(seconds)
        self._starts.inc(Phase.START in phases)
        usage = event.data.get("usage", {})
        self._calls.inc(usage.get("model_calls") or 0)
        self._cost.inc(usage.get("cost_usd") or 0)
        for kind in ("input", "cached", "output"):
            self._tokens.labels(kind).inc(usage.get(f"{kind}_tokens") or 0)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(name, meaning, labels, registry=self.registry)

    def _histogram(self, name: str, meaning: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, meaning, labels, buckets=buckets, registry=self.registry)


class EventTail:
    """Passes every new event to ``tell`` once."""

    def __init__(self, events: EventStore, tell: Callable[[Event], None], seen: int) -> None:
        self._events = events
        self._tell = tell
        self._seen = seen
        self._lock = asyncio.Lock()

    async def catch_up(self) -> None:
        async with self._lock:
            while fresh := await self._events.read(after=self._seen, limit=_BATCH):
                for event in fresh:
                    self._seen = event.seq  # set first, so that an event that cannot be counted is skipped
                    self._tell(event)


@asynccontextmanager
async def counting(metrics: Metrics, events: EventStore) -> AsyncIterator[EventTail]:
    """Counts events from now on. Reads them all the time, so that a scrape has few events left to read."""
    tail = EventTail(events, metrics.happened, await events.last())
    following = asyncio.create_task(Duties(system_clock).forever("metrics", tail.catch_up, _TAIL_SEC), name="metrics")
    try:
        yield tail
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


@router.get("/metrics", response_class=PlainTextResponse, responses=may_fail())
async def metrics(request: Request, service: ServiceDep) -> Response:
    """Prometheus text format. If the store does not answer, the last values stay."""
    numbers: Metrics = request.app.state.metrics
    tail: EventTail = request.app.state.event_tail
    try:
        await tail.catch_up()
        signals = await service.fleet.look()
        numbers.waits(signals, await service.readiness.live_workers(), service.disk.free_bytes)
    except StoreUnavailable as fault:
        log.warning("Could not update the metrics: %s", fault)
    return Response(numbers.text(), media_type=CONTENT_TYPE_LATEST)


def _known(kind: type[Outcome] | type[Cause] | type[Phase], value: object) -> str:
    """Limits a label to its known values, whatever an older version wrote into the log."""
    return str(value) if value in list(kind) else ""


def _state(worker: WorkerRow) -> str:
    if worker.draining:
        return "draining"
    if worker.starting:
        return "starting"
    return "paused" if worker.paused else "working"
