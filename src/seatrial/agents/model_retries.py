"""Retries of model calls, for agents that call the model from this process (terminus-2).

Harbor tries a call three times within seconds. Quota windows last a minute, so a busy provider would end trials.
``retry_model_calls`` wraps the agent's model: it waits as long as the service asks (``Retry-After``), or backs off, up
to a limit, and then raises ``ModelFault``. The trial then ends as an LLM error, never as a failure. The wrapper also
adds the key to each call, so that no configuration contains it.

The runner calls ``retry_model_calls`` once per trial and reads the returned ``ModelHealth``.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, override

from harbor.agents.installed.base import NonZeroAgentExitCodeError
from harbor.llms.base import BaseLLM, LLMResponse

from seatrial.agents.model_error import ModelError, classify_model_error, is_refusal, retry_after
from seatrial.engine.model_patience import ModelHealth, RetryLimits
from seatrial.engine.provider_pace import ProviderPace, Turn
from seatrial.errors import ModelFault
from seatrial.sandboxes.own_time import clock_stopped

Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]
_SPENT = "The budget for model calls is spent."


@dataclass(frozen=True, slots=True)
class CallPace:
    """The pace that the calls of one agent keep."""

    pace: ProviderPace
    name: str
    """Of the provider, the model and the account."""
    stops_clock: bool = True
    """Whether the agent's time limit does not run while a call waits for its turn."""

    def waiting(self) -> AbstractContextManager[None]:
        return clock_stopped() if self.stops_clock else nullcontext()


@dataclass(frozen=True, slots=True)
class Timing:
    """How the time between two requests is measured, spent and spread."""

    clock: Clock = time.monotonic
    sleep: Sleep = asyncio.sleep
    chance: random.Random = field(default_factory=random.Random)


class BudgetSpent(NonZeroAgentExitCodeError):
    """The trial's budget is spent, so its agent ends. Harbor grades after this kind of exception."""


class RetryingModel(BaseLLM):
    """Wraps the agent's model."""

    def __init__(
        self,
        model: BaseLLM,
        policy: RetryLimits,
        *,
        key: str | None = None,
        pace: CallPace | None = None,
        begins: Callable[[], None] = lambda: None,
        is_spent: Callable[[], bool] = lambda: False,
        timing: Timing | None = None,
    ) -> None:
        super().__init__()
        self.health = ModelHealth()
        self._model = model
        self._policy = policy
        self._key = key
        self._pace = pace
        self._begins = begins
        self._is_spent = is_spent
        timing = timing or Timing()
        self._sleep = timing.sleep
        self._clock = timing.clock
        self._chance = timing.chance
        self._began: float | None = None
        # Harbor's own retries are removed, so that only one place retries.
        self._once = getattr(type(model).call, "__wrapped__", type(model).call)

    @override
    def get_model_context_limit(self) -> int:
        return int(self._model.get_model_context_limit())

    @override
    def get_model_output_limit(self) -> int | None:
        limit: int | None = self._model.get_model_output_limit()
        return limit

    @override
    async def call(self, prompt: str, **kwargs: Any) -> LLMResponse:
        if self._is_spent():
            raise BudgetSpent(_SPENT)
        if self.health.given_up is not None:  # agents retry on any exception; all retries share one limit
            raise self.health.given_up
        self.health.calls += 1
        self._begins()
        began = self._clock()
        try:
            return await self._answer(prompt, kwargs)
        finally:
            self.health.waited_sec += self._clock() - began

    async def _answer(self, prompt: str, kwargs: dict[str, Any]) -> LLMResponse:
        failing_since: float | None = None
        failures = 0
        while True:
            turn = await self._take_turn()
            if turn is not None and failing_since is not None and self._was_served(turn.waited_sec):
                failing_since += turn.waited_sec  # a queue that moves is no failure of the service
            asked = self._clock()
            self._began = asked if self._began is None else self._began
            self.health.requests += 1
            try:
                answer = await self._once(self._model, prompt, **self._arguments(kwargs))
            except asyncio.CancelledError:
                self._interrupted(asked, failures)
                raise
            except Exception as error:
                kind = classify_model_error(error)
                if kind is ModelError.AGENT:
                    raise
                if self._is_spent():
                    raise BudgetSpent(_SPENT) from None
                failures += 1
                failing_since = asked if failing_since is None else failing_since
                self.health.faults[type(error).__name__] += 1
                self.health.lost_sec += self._clock() - asked
                limited = turn is not None and is_refusal(error)
                if turn is not None and limited:
                    turn.refused(retry_after(error))
                wait = self._next_wait(error, kind, failures, failing_since)
                if limited and retry_after(error) is not None:
                    wait = 0.0  # the next turn waits for it, as all calls to this provider do
            else:
                if turn is not None:
                    turn.answered()
                return answer
            finally:
                if turn is not None:
                    turn.end()
            await self._wait(wait, limited)

    async def _take_turn(self) -> Turn | None:
        if self._pace is None:
            return None
        began = asyncio.get_running_loop().time()
        try:
            with self._pace.waiting():
                turn = await self._pace.pace.take(self._pace.name)
        except asyncio.CancelledError:
            self._waited_for_pace(asyncio.get_running_loop().time() - began)
            if not self._pace.stops_clock:
                self.health.interrupted = (
                    "its calls waited for their turn at the provider when the agent's time ran out"
                )
            raise
        self._waited_for_pace(turn.waited_sec)
        return turn

    def _waited_for_pace(self, seconds: float) -> None:
        self.health.pace_wait_sec += seconds
        if self._pace is not None and not self._pace.stops_clock:
            self.health.lost_sec += seconds

    def _was_served(self, seconds: float) -> bool:
        """Whether the provider answered any call of this worker in the last seconds."""
        since = asyncio.get_running_loop().time() - seconds
        return self._pace is not None and self._pace.pace.served_since(self._pace.name, since)

    def _arguments(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        ours: dict[str, Any] = {"timeout": self._policy.request_timeout_sec, "max_retries": 0, "num_retries": 0}
        if self._key is not None:
            ours["api_key"] = self._key
        return {**ours, **kwargs}

    def _next_wait(self, error: Exception, kind: ModelError, failures: int, failing_since: float) -> float:
        """Seconds until the next retry. Raises ``ModelFault`` if there is none."""
        if kind is ModelError.LASTING:
            raise self._give_up(error, "refused the request")
        if kind is ModelError.UNKNOWN and failures >= self._policy.unknown_tries:
            raise self._give_up(error, f"failed {failures} times in an unknown way")
        asked_for = retry_after(error)
        wait = self._policy.wait(failures, self._chance) if asked_for is None else asked_for
        waited = self._clock() - failing_since
        if waited + wait > self._policy.limit_sec:
            last = "" if asked_for is None else f" and asks to wait {asked_for:.0f} s more"
            raise self._give_up(error, f"failed {failures} times within {waited:.0f} s{last}")
        return wait

    async def _wait(self, seconds: float, limited: bool = False) -> None:
        """``limited``: the provider limits the pace, and the next turn waits for what it asked."""
        began = self._clock()
        stops = limited and self._pace is not None and self._pace.stops_clock
        try:
            with clock_stopped() if stops else nullcontext():
                await self._sleep(seconds)
        except asyncio.CancelledError:
            self.health.interrupted = "the model's service was failing when the agent's time ran out"
            raise
        finally:
            waited = self._clock() - began
            self.health.lost_sec += 0.0 if stops else waited
            self.health.pace_wait_sec += waited if limited else 0.0

    def _interrupted(self, asked: float, failures: int) -> None:
        now = self._clock()
        silent, whole = now - asked, now - (self._began or asked)
        if failures:
            self.health.interrupted = "the model's service was failing when the agent's time ran out"
        elif silent > whole / 2:
            self.health.interrupted = (
                f"the model's service had not answered for {silent:.0f} s when the agent's time ran out"
            )

    def _give_up(self, error: Exception, how: str) -> ModelFault:
        text = " ".join(str(error).split())[:500]
        if self._key:
            text = text.replace(self._key, "[key]")
        fault = ModelFault(f"The model's service {how}: {type(error).__name__}: {text}")
        # The original exception may quote the key, and a traceback would print it.
        fault.__suppress_context__ = True
        self.health.given_up = fault
        return fault


def retry_model_calls(
    agent: Any,
    policy: RetryLimits,
    *,
    key: str | None = None,
    pace: CallPace | None = None,
    begins: Callable[[], None] = lambda: None,
    is_spent: Callable[[], bool] = lambda: False,
) -> ModelHealth:
    """Replaces the model of an agent that runs in this process; returns its health, which is updated.

    ``begins`` is called before each call of the agent, in the agent's task. ``is_spent`` tells whether its budget is.

    Agents that call their model from inside the sandbox are not changed.
    """
    model = getattr(agent, "_llm", None)
    if not isinstance(model, BaseLLM):
        return ModelHealth()
    agent._llm = retrying = RetryingModel(model, policy, key=key, pace=pace, begins=begins, is_spent=is_spent)
    return retrying.health
