"""The event stream of one client: first from the store, then from the broadcast, without gaps or duplicates.

``routes.events`` creates one per request. ``Feed`` produces the text; ``EventStream`` sends it, and notices when the
client disconnects or stops reading.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

from fastapi import Response
from starlette.types import Receive, Scope, Send

from seatrial.api.live.broadcast import Broadcast, Choice, Listener
from seatrial.api.live.messages import Batch, Position
from seatrial.domain.event import EventKind
from seatrial.domain.output import RING_PIECES
from seatrial.domain.trial import TrialState
from seatrial.errors import NotFound, StoreUnavailable
from seatrial.ports.store import Page, Store, TrialFilter

_PAGE = 500
_KEEP_ALIVE_SEC = 15.0
_STORE_PATIENCE_SEC = 1.0
_STALLED_SEC = 120.0
"""A client that reads nothing for this long is cut. It can resume with its last id."""
_STILL_HERE = b": still here\n\n"


class Feed:
    """The messages of one listener, in portions."""

    def __init__(self, store: Store, broadcast: Broadcast, choice: Choice, position: Position) -> None:
        self._store = store
        self._broadcast = broadcast
        self._choice = choice
        self._position = position
        self._is_over = False

    async def portions(self) -> AsyncGenerator[bytes]:
        """Ends when the job or trial has ended and everything was sent, or when the server stops."""
        async with self._broadcast.listen(self._choice) as listener:
            yield self._note("retry: 2000")
            while not self._broadcast.is_closed:
                try:
                    if listener.lost_track:
                        await self._broadcast.join(listener, await self._running_trials())
                        self._is_over = await self._has_ended()
                        async for portion in self._rest(listener):
                            yield portion
                    elif batches := listener.take():
                        yield b"".join(map(self._tell, batches))
                    elif self._is_over:
                        if self._choice.output:  # the final output may be written but not sent yet
                            async for portion in self._rest(listener):
                                yield portion
                        yield self._note("event: end", {})
                        return
                    else:
                        yield await _awaited_news(listener)
                except StoreUnavailable:
                    yield b": the store does not answer\n\n"
                    listener.lost_track = True
                    await asyncio.sleep(_STORE_PATIENCE_SEC)

    async def _rest(self, listener: Listener) -> AsyncGenerator[bytes]:
        """What the store has beyond the current position. The queue, joined before, continues from there."""
        choice, position = self._choice, self._position
        while events := await self._store.events.read(position.event, choice.job_id, choice.trial_id, _PAGE):
            yield self._tell(Batch.of(events))
            if len(events) < _PAGE:
                break
        trials = sorted(listener.trials)
        if choice.trial_id in trials and await self._has_lost_output(choice.trial_id):
            yield self._note("event: gap", {"trial_id": choice.trial_id})
        while pieces := await self._store.output.read(trials, position.output, _PAGE):
            yield self._tell(Batch.of(pieces))
            if len(pieces) < _PAGE:
                break

    def _tell(self, batch: Batch) -> bytes:
        turn = batch.turns.get(self._end) if self._end is not None else None
        if turn is not None and turn.seq > self._position.event:
            self._is_over = turn.kind == self._end
        return batch.tell(self._position, self._choice.kinds)

    @property
    def _end(self) -> EventKind | None:
        if self._choice.trial_id is not None:
            return EventKind.TRIAL_ENDED
        return EventKind.JOB_ENDED if self._choice.job_id is not None else None

    def _note(self, line: str, data: dict[str, int] | None = None) -> bytes:
        body = "" if data is None else f"data: {json.dumps(data)}\n"
        return f"{line}\nid: {self._position}\n{body}\n".encode()

    async def _running_trials(self) -> list[int]:
        """Trials whose output a listener of a whole job receives from the start; later ones are added when they are
        claimed."""
        if not self._choice.output or self._choice.job_id is None:
            return []
        running = TrialFilter(job_id=self._choice.job_id, states=(TrialState.RUNNING,))
        return [row.trial.id for row in await self._store.trials.summaries(running, Page(limit=1000))]

    async def _has_lost_output(self, trial_id: int) -> bool:
        """A full ring drops its oldest pieces. If a piece that was sent is still there, none was missed."""
        ring = await self._store.output.read([trial_id], 0, RING_PIECES)
        return len(ring) >= RING_PIECES and ring[0].seq > self._position.output

    async def _has_ended(self) -> bool:
        """The state and its event are written together, so the event can be read once this is true."""
        try:
            if self._choice.trial_id is not None:
                return (await self._store.trials.get(self._choice.trial_id)).trial.state is TrialState.ENDED
            if self._choice.job_id is not None:
                return (await self._store.jobs.get(self._choice.job_id)).ended_at is not None
        except NotFound:  # deleted
            return True
        return False


class EventStream(Response):
    """Sends a feed. Frees its resources when the client disconnects, and cuts a client that does not read."""

    media_type = "text/event-stream"

    def __init__(self, feed: Feed) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._feed = feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        telling = asyncio.create_task(self._tell(send), name="event-stream")
        leaving = asyncio.create_task(until_left(receive))
        try:
            await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            if not telling.done():
                telling.cancel()
            await asyncio.wait({telling, leaving})
        if not telling.cancelled():
            telling.result()

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        portions = self._feed.portions()
        try:
            async for portion in portions:
                if portion:
                    async with asyncio.timeout(_STALLED_SEC):
                        await send({"type": "http.response.body", "body": portion, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (TimeoutError, OSError):
            return
        finally:
            await portions.aclose()


async def _awaited_news(listener: Listener) -> bytes:
    """Sends a comment at intervals, so that proxies see that the stream is alive."""
    listener.news.clear()
    if listener.queue or listener.lost_track:
        return b""
    try:
        async with asyncio.timeout(_KEEP_ALIVE_SEC):
            await listener.news.wait()
    except TimeoutError:
        return _STILL_HERE
    return b""


async def until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
