"""Live: what happens to a job, a trial or everything, as server-sent events that can be taken up where they broke.

Every message has the id ``<event>-<output>``: the last event and the last piece of live output that were sent. A client
that comes back with it (``Last-Event-ID``, or ``?after=``) gets exactly what it missed.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Query

from seatrial.api.context import ServiceDep
from seatrial.api.live.broadcast import Choice
from seatrial.api.live.event_stream import EventStream, Story
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

After = Annotated[str, Query(description="Go on after the message with this id, as `Last-Event-ID` does.")]
Kinds = Annotated[
    str, Query(description="Kinds of messages to send, with commas between; live output is `trial.output`.")
]
LastEventId = Annotated[str, Header(description="Sent by browsers that come back.")]


@router.get("/events", response_class=EventStream, status_code=200, responses=_STREAM)
async def all_events(
    service: ServiceDep, after: After = "", kinds: Kinds = "", last_event_id: LastEventId = ""
) -> EventStream:
    """Everything that happens from now on, or after the given id; without live output. It never ends."""
    store = service.installation.store
    given = last_event_id or after
    position = Position.parse(given) if given else Position(await store.last_event())
    wanted = _kinds(kinds) - {OUTPUT}
    if kinds and not wanted:
        raise InvalidInput("Live output is sent for a job or a trial.", field="kinds")
    return EventStream(Story(store, service.broadcast, Choice(kinds=wanted), position))


@router.get("/jobs/{job_id}/events", response_class=EventStream, status_code=200, responses=_STREAM)
async def job_events(
    job_id: JobId, service: ServiceDep, after: After = "", kinds: Kinds = "", last_event_id: LastEventId = ""
) -> EventStream:
    """The whole story of a job so far, then what happens. Live output of its trials is sent if it is asked for."""
    store = service.installation.store
    await store.job(job_id)
    wanted = _kinds(kinds)
    choice = Choice(job_id=job_id, kinds=wanted, output=OUTPUT in wanted)
    return EventStream(Story(store, service.broadcast, choice, Position.parse(last_event_id or after)))


@router.get("/trials/{trial_id}/events", response_class=EventStream, status_code=200, responses=_STREAM)
async def trial_events(
    trial_id: TrialId, service: ServiceDep, after: After = "", kinds: Kinds = "", last_event_id: LastEventId = ""
) -> EventStream:
    """The whole story of a trial so far, then what happens, with what it writes while it runs."""
    store = service.installation.store
    await store.trial(trial_id)
    wanted = _kinds(kinds)
    choice = Choice(trial_id=trial_id, kinds=wanted, output=not wanted or OUTPUT in wanted)
    return EventStream(Story(store, service.broadcast, choice, Position.parse(last_event_id or after)))


def _kinds(given: str) -> frozenset[str]:
    kinds = frozenset(kind.strip() for kind in given.split(",") if kind.strip())
    if unknown := sorted(kinds - _KINDS):
        raise InvalidInput(
            f"There are no messages of the kind {', '.join(unknown)}.",
            field="kinds",
            fix=f"Use {', '.join(sorted(_KINDS))}.",
        )
    return kinds
