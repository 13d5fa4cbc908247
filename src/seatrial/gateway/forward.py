"""Gets an answer for a call: takes a turn, asks the provider, and waits out rate limits and outages.

While the trial's patience lasts, the agent does not see failures that may pass. After a 429 or an overload the next
request waits for ``Retry-After``, after a 5xx or a broken connection for a growing time. In the end the agent gets the
provider's last answer as it is. Once a part of an answer was passed on, the call is not sent again.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime

from seatrial.engine.model_patience import RetryLimits, seconds_asked
from seatrial.engine.provider_pace import ProviderPace, Turn
from seatrial.gateway.agent_clock import ClockStop
from seatrial.gateway.body_memory import BodyMemory
from seatrial.gateway.effort import Effort
from seatrial.gateway.head import Fields
from seatrial.gateway.upstream import Question, Reply, Upstream, UpstreamFault

_PASSING = frozenset({408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_LIMITED = frozenset({429, 529})
_TIMED_OUT = frozenset({504, 524})
"""A proxy did not wait for the provider's answer. The provider may have given and counted it."""
_NO_MONEY = re.compile(rb"insufficient_quota|exceeded your current quota|insufficient credits", re.IGNORECASE)
_LONGEST_HELD = 8 * 1024 * 1024
_LONGEST_ERROR = 256 * 1024


@dataclass(frozen=True, slots=True)
class Accepted:
    """An answer that is passed on."""

    status: int
    reason: str
    fields: Fields
    body: bytes
    """The whole body, or its beginning."""
    rest: AsyncIterator[bytes] | None = None
    """What follows, if it was not read yet."""
    is_cut: bool = False
    """The rest of a long error is left out."""


class OutOfPatience(Exception):
    """The provider could not be reached for as long as the trial waits."""


class OutOfBudget(Exception):
    """Answers were lost, each of which may cost something, and the budget has no room for another request."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a try failed."""

    kind: str
    asked_for: float | None = None
    """Seconds that the provider asked to wait."""
    limited: bool = False
    """The provider says that it gets too many calls."""
    unknown: bool = False
    """Our own request may be the reason, so it is sent only a few times."""
    lost: bool = False
    """The provider has the request, and may count an answer that did not arrive."""


@dataclass(frozen=True)
class Forwarder:
    """One per gate; ``answered`` runs for many calls at once."""

    upstream: Upstream
    memory: BodyMemory
    patience: RetryLimits
    pace: ProviderPace | None = None
    chance: random.Random = field(default_factory=random.Random)

    @asynccontextmanager
    async def answered(
        self, question: Question, account: str, effort: Effort, clock: ClockStop = nullcontext
    ) -> AsyncIterator[Accepted]:
        """Raises ``OutOfPatience`` and ``OutOfBudget``. The connection to the provider is open until the end of the
        block."""
        while True:
            async with AsyncExitStack() as one_try:
                turn = await self._turn(account, effort, clock)
                if turn is not None:
                    one_try.callback(turn.end)
                accepted, failure = await self._ask(question, effort, one_try)
                wait = self._after(failure, effort, turn)
                if wait is None:
                    if accepted is None:
                        raise OutOfPatience(failure.kind if failure else "")
                    yield accepted
                    return
            assert failure is not None
            with clock() if failure.limited else nullcontext():
                await effort.wait(wait, limited=failure.limited)

    async def _turn(self, account: str, effort: Effort, clock: ClockStop) -> Turn | None:
        if self.pace is None:
            return None
        with clock():
            turn = await effort.queue(self.pace.take(account))
        if turn.waited_sec and self.pace.served_since(account, asyncio.get_running_loop().time() - turn.waited_sec):
            effort.forgive(turn.waited_sec)  # a queue that moves is no failure of the service
        return turn

    async def _ask(
        self, question: Question, effort: Effort, one_try: AsyncExitStack
    ) -> tuple[Accepted | None, _Failure | None]:
        effort.asks()
        reply: Reply | None = None
        try:
            reply = await one_try.enter_async_context(self.upstream.ask(question))
            accepted = await self._read(reply, effort, one_try)
        except UpstreamFault as fault:
            no_refusal = reply is None or reply.status < 300 or reply.status in _TIMED_OUT
            return None, _Failure(fault.kind, lost=fault.was_sent and no_refusal)
        return accepted, _failure_of(reply, accepted, effort.streams)

    async def _read(self, reply: Reply, effort: Effort, one_try: AsyncExitStack) -> Accepted:
        """Reads errors and plain answers to their end, so that one that breaks off can be tried again. A stream passes
        from its first piece on."""
        pieces = reply.pieces()
        one_try.push_async_callback(pieces.aclose)
        streamed, fails = is_stream(effort.streams, reply.status, reply.fields), reply.status >= 400
        memory, held = one_try.enter_context(self.memory.empty(effort.door)), bytearray()
        async for piece in pieces:
            effort.hears()
            held += piece
            if fails and (len(held) > _LONGEST_ERROR or not memory.grow(len(piece))):
                cut = bytes(held[:_LONGEST_ERROR])  # errors never pass in pieces: the key is taken out of them
                return Accepted(reply.status, reply.reason, reply.fields, cut, is_cut=True)
            if fails:
                continue
            if streamed or len(held) > _LONGEST_HELD or not memory.grow(len(piece)):
                return Accepted(reply.status, reply.reason, reply.fields, bytes(held), pieces)
        return Accepted(reply.status, reply.reason, reply.fields, bytes(held))

    def _after(self, failure: _Failure | None, effort: Effort, turn: Turn | None) -> float | None:
        """Seconds until the next try; ``None`` if this answer is passed on."""
        if failure is None:
            effort.succeeds()
            if turn is not None:
                turn.answered()
            return None
        effort.fails(failure.kind, lost=failure.lost)
        if turn is not None and failure.limited:
            turn.refused(failure.asked_for)
        if failure.unknown and effort.failures >= self.patience.unknown_tries:
            effort.gives_up(failure.kind)
            return None
        asked_for = failure.asked_for
        wait = self.patience.wait(effort.failures, self.chance) if asked_for is None else asked_for
        if effort.failing_for() + wait > self.patience.limit_sec:
            effort.gives_up(failure.kind)
            return None
        if failure.lost and not effort.may_ask_again():
            raise OutOfBudget(failure.kind)
        if turn is not None and failure.limited and asked_for is not None:
            return 0.0  # the next turn waits for it, as all calls to this provider do
        return wait


def is_stream(asked: bool, status: int, fields: Fields) -> bool:
    """Whether an answer is a stream of events. Some servers send a plain answer where a stream was asked for."""
    kind = next((value for name, value in fields if name == "content-type"), "")
    return asked and status == 200 and kind.partition(";")[0].strip().lower() != "application/json"


def _failure_of(reply: Reply, accepted: Accepted, streams: bool) -> _Failure | None:
    """``None`` if the answer is final: a good one, or one that waiting does not change."""
    if reply.status in _PASSING:
        if _NO_MONEY.search(accepted.body):
            return None
        value = reply.header("retry-after")
        asked_for = None if value is None else seconds_asked(value, datetime.now(UTC))
        limited = reply.status in _LIMITED or (reply.status == 503 and asked_for is not None)
        return _Failure(f"HTTP {reply.status}", asked_for, limited, lost=reply.status in _TIMED_OUT)
    streamed = is_stream(streams, reply.status, reply.fields)
    if reply.status == 200 and accepted.rest is None and not streamed and not _is_json(accepted.body):
        return _Failure("an answer that is not JSON", unknown=True, lost=True)
    return None


def _is_json(body: bytes) -> bool:
    """Looks at both ends only: the format reads the whole later."""
    text = body.strip()
    return text[:1] in (b"{", b"[") and text[-1:] in (b"}", b"]")
