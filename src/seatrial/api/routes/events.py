"""Events of a job, a trial or the whole service as server-sent events that a client can resume.

The id of a message is ``<event>-<output>``: the last event and the last piece of live output sent so far. A client that
reconnects with it (``Last-Event-ID``, or ``?after=``) receives exactly what it missed.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Query

from seatrial.api.context import Service, ServiceDep
from seatrial.api.live.broadcast import Choice
from seatrial.api.live.event_stream import EventStream, Feed
from seatrial.api.live.messages import OUTPUT, Position
from seatrial.api.routes.pages import JobId, TrialId
from seatrial.api.routes.router import native_router
from seatrial.domain.event import EventKind
from seatrial.errors import InvalidInput

router = native_router("", "live", 400, 404)

_KINDS = frozenset({*(kind.value for kind in EventKind), OUTPUT})
_STREAM: dict[int | str, dict[str, object]] = {
    200: {
        "description": "Server-sent events: `id`, `event` (a kind) and `data` (JSON). Ends with `event: end`.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}

After = Annotated[str, Query(description="Continue after the message with this id, like `Last-Event-ID`.")]
Kinds = Annotated[
    str, Query(description="Kinds of messages to send, separated by commas. Live output is `trial.output`.")
]
LastEventId = Annotated[str, Header(description="Sent by browsers when they reconnect.")]


@router.get("/events", response_class=EventStream, status_code=200, responses=_STREAM)
async def all_events(
    service: ServiceDep, after: After = "", kinds: Kinds = "", last_event_id: LastEventId = ""
) -> EventStream:
    """Streams all events from now on, or after the given id, without live output. It never ends."""
    given = last_event_id or after
    position = Position.parse(given) if given else Position(await service.installation.store.events.last())
    wanted = _kinds(kinds) - {OUTPUT}
    if kinds and not wanted:
        raise InvalidInput("Live output is available for a job or a trial only.", field="kinds")
    return _stream(service, Choice(kinds=wanted), position)


@router.get("/jobs/{job_id}/events", response_class=EventStream, status_code=200, responses=_STREAM)
async def job_events(
    job_id: JobId, service: ServiceDep, after: After = "", kinds: Kinds = "", last_event_id: LastEventId = ""
) -> EventStream:
    """Streams all events of a job, past and new. Includes live output of its trials if `trial.output` is requested."""
    await service.installation.store.jobs.get(job_id)
    wanted = _kinds(kinds)
    choice = Choice(job_id=job_id, kinds=wanted, output=OUTPUT in wanted)
    return _stream(service, choice, Position.parse(last_event_id or after))


@router.get("/trials/{trial_id}/events", response_class=EventStream, status_code=200, responses=_STREAM)
async def trial_events(
    trial_id: TrialId, service: ServiceDep, after: After = "", kinds: Kinds = "", last_event_id: LastEventId = ""
) -> EventStream:
    """Streams all events of a trial, past and new, with its live output."""
    await service.installation.store.trials.get(trial_id)
    wanted = _kinds(kinds)
    choice = Choice(trial_id=trial_id, kinds=wanted, output=not wanted or OUTPUT in wanted)
    return _stream(service, choice, Position.parse(last_event_id or after))


def _stream(service: Service, choice: Choice, position: Position) -> EventStream:
    return EventStream(Feed(service.installation.store, service.broadcast, choice, position))


def _kinds(given: str) -> frozenset[str]:
    kinds = frozenset(kind.strip() for kind in given.split(",") if kind.strip())
    if unknown := sorted(kinds - _KINDS):
        raise InvalidInput(
            f"Unknown kind of message: {', '.join(unknown)}.",
            field="kinds",
            fix=f"Use {', '.join(sorted(_KINDS))}.",
        )
    return kinds
