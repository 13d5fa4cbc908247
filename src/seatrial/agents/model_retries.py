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
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, override

from harbor.llms.base import BaseLLM, LLMResponse

from seatrial.agents.model_error import ModelError, classify_model_error, retry_after
from seatrial.domain.frozen import Frozen
from seatrial.errors import ModelFault

Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]


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
    """Tries after an error of unknown kind: our own request may be wrong."""

    def wait(self, failures: int, chance: random.Random) -> float:
        """Doubles with each failure; the jitter keeps many trials from retrying at the same moment."""
        whole = min(self.first_wait_sec * 2.0 ** (failures - 1), self.longest_wait_sec)
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


class RetryingModel(BaseLLM):
    """Wraps the agent's model."""

    def __init__(
        self,
        model: BaseLLM,
        policy: RetryLimits,
        *,
        key: str | None = None,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
        chance: random.Random | None = None,
    ) -> None:
        super().__init__()
        self.health = ModelHealth()
        self._model = model
        self._policy = policy
        self._key = key
        self._sleep = sleep
        self._clock = clock
        self._chance = chance or random.Random()  # noqa: S311 - spreads waits, no secret
        self._began: float | None = None
        # Harbor's own three tries are removed, so that only one place retries.
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
        if self.health.given_up is not None:  # agents retry on any exception; all retries share one limit
            raise self.health.given_up
        self.health.calls += 1
        failing_since: float | None = None
        failures = 0
        while True:
            asked = self._clock()
            self._began = asked if self._began is None else self._began
            self.health.requests += 1
            try:
                return await self._once(self._model, prompt, **self._arguments(kwargs))
            except asyncio.CancelledError:
                self._interrupted(asked, failures)
                raise
            except Exception as error:
                kind = classify_model_error(error)
                if kind is ModelError.AGENT:
                    raise
                failures += 1
                failing_since = asked if failing_since is None else failing_since
                self.health.faults[type(error).__name__] += 1
                self.health.lost_sec += self._clock() - asked
                wait = self._next_wait(error, kind, failures, failing_since)
            await self._wait(wait)

    def _arguments(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        ours: dict[str, Any] = {"timeout": self._policy.request_timeout_sec, "max_retries": 0, "num_retries": 0}
        if self._key is not None:
            ours["api_key"] = self._key
        return {**ours, **kwargs}

    def _next_wait(self, error: Exception, kind: ModelError, failures: int, failing_since: float) -> float:
        """Seconds until the next try. Raises ``ModelFault`` if there is none."""
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

    async def _wait(self, seconds: float) -> None:
        began = self._clock()
        try:
            await self._sleep(seconds)
        except asyncio.CancelledError:
            self.health.interrupted = "the model's service was failing when the agent's time ran out"
            raise
        finally:
            self.health.lost_sec += self._clock() - began

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


def retry_model_calls(agent: Any, policy: RetryLimits, *, key: str | None = None) -> ModelHealth:
    """Replaces the model of an agent that runs in this process; returns its health, which is updated.

    Agents that call their model from inside the sandbox are not changed.
    """
    model = getattr(agent, "_llm", None)
    if not isinstance(model, BaseLLM):
        return ModelHealth()
    agent._llm = retrying = RetryingModel(model, policy, key=key)
    return retrying.health
