"""One model call: what is sent, what comes back, and what is noted about it.

The bodies pass unchanged, except for what ``wire`` changes: the model's name, a clamped length of the answer, and the
request for the usage of a stream, which is taken out of the answer again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from seatrial.domain.model_calls.model_call import CallUsage, ModelCall
from seatrial.domain.model_calls.prices import CallCost, cost_of
from seatrial.engine.budgets.trial_budget import BudgetUnknown
from seatrial.errors import ModelFault
from seatrial.gateway.answer_writer import AnswerWriter, NotRead
from seatrial.gateway.body_memory import Hold
from seatrial.gateway.call_budget import Grant
from seatrial.gateway.effort import Effort
from seatrial.gateway.forward import Accepted, Forwarder, OutOfBudget, OutOfPatience, is_stream
from seatrial.gateway.head import Fields, end_to_end
from seatrial.gateway.key_removal import key_removal
from seatrial.gateway.recording import RecordedCall
from seatrial.gateway.replay import RecordedAnswer
from seatrial.gateway.routes import Route
from seatrial.gateway.trial_calls import TrialCalls
from seatrial.gateway.upstream import Question, UpstreamFault
from seatrial.gateway.wire import (
    Answer,
    CallRequest,
    JsonObject,
    RefusalKind,
    StreamMeter,
    WireFormat,
)

_ASKED = frozenset(
    {
        *("accept", "accept-language", "user-agent"),
        *("anthropic-version", "anthropic-beta", "anthropic-dangerous-direct-browser-access", "openai-beta"),
        *("x-goog-api-client", "http-referer", "x-title", "x-app", "originator", "version"),
        *("session_id", "conversation_id", "x-session-id", "modal-session-id"),
    }
)
"""Headers of an agent that pass: what it is, what it can read, which version of a format it speaks, and which of its
calls belong together. Others could choose who pays, where a call goes or what an answer tells."""
_JSON = ("content-type", "application/json")
_ASKED_BEGINNING = "x-stainless-"
"""How the clients of OpenAI and Anthropic describe themselves."""


@dataclass
class OneCall:
    """``run`` answers the call, and always writes its record."""

    wire: WireFormat
    request: CallRequest
    route: Route
    url: str
    fields: Fields = field(repr=False)
    body: JsonObject | None = field(repr=False)
    grant: Grant | None
    calls: TrialCalls
    door: Hashable
    """Which door it came through."""
    path: str = ""
    """As the agent sent it."""
    digest: str = ""
    played: RecordedAnswer | None = None
    """The recorded answer that it gets, instead of the provider's."""
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    effort: Effort = field(init=False)
    _number: int | None = None
    _status: int = 0
    _answer: Answer = field(default_factory=Answer)
    _error: str | None = None
    _over_budget: bool = False
    _cut_off: bool = False
    """The connection to the agent was cut in the middle of the answer."""
    _is_whole: bool = False
    """The whole answer has arrived: the stream sent its own end. Clients then close their connection."""
    _kept: RecordedCall | None = None
    _told: CallUsage = field(default_factory=CallUsage)
    """The usage that is in the journal."""
    _heard: bool = False

    def __post_init__(self) -> None:
        assert self.body is not None
        self._kept = self.calls.recording(self.path, self.digest, self.body.text)
        if self.request.counts:
            self._number = self.calls.next_number()
        self.effort = self.calls.effort(self.door, streams=self.request.streams, on_ask=self._asks, grant=self.grant)

    async def run(self, forwarder: Forwarder, answer: AnswerWriter, hold: Hold) -> None:
        """``hold`` is the memory of the body. It is released as soon as the body is not needed any more."""
        try:
            await self._forward(forwarder, answer, hold)
        except OutOfPatience as silence:
            self._error = f"no answer: {silence}"
            await self._refuse("upstream_away", f"The model's address does not answer: {silence}.", answer)
        except OutOfBudget as lost:
            self._error, self._over_budget = f"the budget has no room for another request: {lost}", True
            await self._refuse("over_budget", "The budget has no room for another request.", answer)
        except BudgetUnknown:
            self._error = f"no answer, and {self._gives_up_on_budget()}"
            await self._refuse("upstream_away", f"There is {self._error}.", answer)
        except (ConnectionError, asyncio.CancelledError) as end:
            why = str(end) if isinstance(end, NotRead) else "the agent closed the connection"
            self._error = self._error or why
            self.effort.interrupted()
            if self._kept is not None and not self._is_whole:
                self._kept.abandon()
            raise
        finally:
            self._note()

    def _asks(self) -> None:
        if self._number is not None:
            self.calls.asks(self._number, self.route.litellm_name, self.at)

    async def _forward(self, forwarder: Forwarder, answer: AnswerWriter, hold: Hold) -> None:
        async with self._answered(forwarder, hold) as told:
            hold.release()
            accepted = self._without_key(told)
            self._status = accepted.status
            if accepted.status < 200 or 300 <= accepted.status < 400:
                self._error = "a redirect"
                words = "The model's address answers with a redirect, which is not followed."
                await self._refuse("forbidden_path", words, answer)
            elif accepted.rest is None and not self._is_stream(accepted):
                await self._whole(accepted, answer)
            else:
                await self._stream(accepted, answer)

    @asynccontextmanager
    async def _answered(self, forwarder: Forwarder, hold: Hold) -> AsyncIterator[Accepted]:
        if self.played is not None:
            self.body = None
            yield self.played.accepted(streams=self.request.streams)
            return
        question = self._question()
        hold.resize(len(question.body))  # the text was freed, only its bytes are left
        clock = self.calls.clock.waiting
        async with forwarder.answered(question, self.route.account, self.effort, clock) as accepted:
            question.forget()  # the request is not sent again from here on
            yield accepted

    @property
    def clamp(self) -> int | None:
        return self.grant.most_output_tokens if self.grant is not None else None

    @property
    def _asks_for_usage(self) -> bool:
        return self.request.streams and not self.request.tells_usage

    def _question(self) -> Question:
        read, self.body = self.body, None
        assert read is not None
        body = self.wire.prepare(
            read, model=self.route.model, max_output_tokens=self.clamp, tell_usage=self._asks_for_usage
        )
        fixed = dict([("accept-encoding", "identity"), _JSON, *self.route.headers.items()])
        kept = [field for field in end_to_end(self.fields, fixed) if _passes(field[0])]
        return Question(self.url, (*kept, *fixed.items()), body)

    def _without_key(self, told: Accepted) -> Accepted:
        """The answer without the key of the call, which the provider may repeat."""
        removal = key_removal(tuple(self.route.headers.values()))
        fields, body = removal.from_fields(told.fields), told.body
        if told.status >= 400 and not _is_plain(told):
            _, _, body = self.wire.refusal("upstream_away", "The error cannot be read: it is compressed.")
            fields = (*(field for field in fields if not field[0].startswith("content-")), _JSON)
        elif told.status >= 400:
            body = removal.from_body(body, is_cut=told.is_cut)
        return replace(told, reason=removal.from_text(told.reason), fields=fields, body=body)

    async def _refuse(self, kind: RefusalKind, message: str, answer: AnswerWriter) -> None:
        self._status, fields, body = self.wire.refusal(kind, message)
        if self._kept is not None:
            self._kept.whole(self._status, fields, body)
        await answer.whole(self._status, "", fields, body)

    def _is_stream(self, accepted: Accepted) -> bool:
        return is_stream(self.request.streams, accepted.status, accepted.fields)

    async def _whole(self, accepted: Accepted, answer: AnswerWriter) -> None:
        if self._kept is not None:
            self._kept.whole(accepted.status, accepted.fields, accepted.body)
        self._is_whole = True
        self._answer = self.wire.read_answer(accepted.body)
        self._hears(self._answer)
        self._error = self._answer.error or (f"HTTP {accepted.status}" if accepted.status >= 400 else None)
        await answer.whole(accepted.status, accepted.reason, accepted.fields, accepted.body)

    async def _stream(self, accepted: Accepted, answer: AnswerWriter) -> None:
        """Passes the pieces on as they come, and reads the usage on the way."""
        meter = None
        if self._is_stream(accepted) and _is_plain(accepted):
            meter = self.wire.meter(tell_usage=self._asks_for_usage)
        if self._kept is not None:
            self._kept.head(accepted.status, accepted.fields)
        answer.begin(accepted.status, accepted.reason, accepted.fields)
        try:
            await self._piece(accepted.body, meter, answer)
            if accepted.rest is not None and not self._over_budget:
                async for piece in accepted.rest:
                    await self._piece(piece, meter, answer)
                    if self._over_budget:
                        break
            if meter is not None and not self._over_budget:
                await answer.piece(meter.end())
            await answer.end()
        except (UpstreamFault, BudgetUnknown) as fault:
            why = fault.kind if isinstance(fault, UpstreamFault) else self._gives_up_on_budget()
            self._error = f"the answer broke off: {why}"
            last = b"" if meter is None else meter.broken("The model's service broke off its answer.")
            self._record(last)
            await answer.piece(last)
            if last:
                await answer.end()
            else:
                self._cut_off = True
                answer.cut()  # no client may take it for complete
        finally:
            if meter is not None:
                self._answer, self._is_whole = meter.answer, meter.ended

    async def _piece(self, piece: bytes, meter: StreamMeter | None, answer: AnswerWriter) -> None:
        self._record(piece)
        passed, begins = piece if meter is None else meter.feed(piece), not self._heard
        self._heard = True
        if meter is not None and (begins or meter.ended):  # some providers tell the size of the prompt at once
            self._hears(meter.answer)
        if meter is not None and self.grant is not None and not self.grant.allows(meter.output_tokens_so_far):
            self._over_budget = True
            last = meter.cut("The budget is used up.")
            self._record(last)
            passed += last
        await answer.piece(passed)

    def _gives_up_on_budget(self) -> str:
        """Returns why the call ends here. Unless a later call succeeds, a failed grade says nothing about the agent."""
        why = "the store did not say what is left of the budget"
        self.calls.health.given_up = ModelFault(f"A model call was ended: {why}")
        return why

    def _record(self, piece: bytes) -> None:
        if self._kept is not None:
            self._kept.piece(piece)

    def _hears(self, told: Answer) -> None:
        """Writes the usage down before the agent has the whole answer, because this worker may be killed afterwards."""
        if self._number is not None and self.played is None and told.usage != self._told:
            self._told = told.usage
            self.calls.hears(self._number, told.usage, self._cost(told))

    def _cost(self, found: Answer) -> CallCost:
        return cost_of(found.usage, self.route.price, found.cost_usd, found.ways or self.request.ways)

    def _note(self) -> None:
        self._as_recorded()
        if self._kept is not None:
            given_up = self.calls.health.given_up is not None
            self._kept.end(self._error, over_budget=self._over_budget, broken=self._cut_off, given_up=given_up)
        if self._number is None:
            return
        found = self._answer
        cost = self._cost(found)
        # Several models may have answered: the budget takes the dearest, unless the provider says which it was.
        self._settle(found.usage, found.cost_usd if self.request.other_models else cost.dollars)
        saved, cost = (cost.dollars, CallCost(dollars=0.0)) if self.played is not None else (None, cost)
        tokens = found.tokens
        call = ModelCall(
            at=self.at,
            model=self.route.litellm_name,
            provider=self.route.provider,
            format=self.wire.name,
            status=self._status or None,
            tries=self.effort.tries,
            lost_tries=self.effort.lost,
            waited_sec=round(self.effort.waited_sec, 3),
            first_token_sec=self.effort.first_sec if self._status == 200 else None,
            seconds=round(self.effort.seconds, 3),
            usage=found.usage,
            cost_usd=cost.dollars,
            cost_by=cost.by,
            finish_reason=found.finish_reason,
            request_digest=self.digest or None,
            clamped_to=self.clamp,
            streamed=self.request.streams,
            over_budget=self._over_budget,
            error=self._error,
            recorded=None if self._kept is None else self._kept.is_kept,
            tokens_kept=None if tokens is None else self.calls.save_tokens(self._number, tokens),
            replayed=self.played is not None,
            saved_usd=saved,
        )
        self.calls.end(self._number, call)

    def _as_recorded(self) -> None:
        """Takes from the record what the bytes of its answer do not show."""
        if self.played is None:
            return
        self._error = self.played.error or self._error
        self._over_budget = self.played.over_budget
        if not self.played.given_up:
            self.effort.succeeds()
        else:
            self.calls.health.given_up = ModelFault(f"The recorded call got no answer: {self._error}")

    def _settle(self, usage: CallUsage, dollars: float | None) -> None:
        if self.grant is None:
            return
        if usage.is_known:
            self.grant.settle(usage, dollars)
        elif self._status >= 300 or not self.effort.is_open:
            self.grant.cancel()
        else:
            self.grant.settle_unknown()


def _passes(name: str) -> bool:
    return name in _ASKED or name.startswith(_ASKED_BEGINNING)


def _is_plain(accepted: Accepted) -> bool:
    """We ask for no compression. If a provider compresses anyway, its answer passes unread."""
    return all(value in ("", "identity") for name, value in accepted.fields if name == "content-encoding")
