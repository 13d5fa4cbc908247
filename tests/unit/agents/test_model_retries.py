"""RetryLimits with a failing model, on a clock of our own: how long is waited, when it is given up, who is blamed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, override

import pytest
from harbor.agents.installed.base import NonZeroAgentExitCodeError
from harbor.llms.base import BaseLLM, ContextLengthExceededError, LLMResponse

from seatrial.adapters.causes import mark_of
from seatrial.agents.model_error import ModelError, classify_model_error, retry_after
from seatrial.agents.model_retries import RetryingModel, Timing, retry_model_calls
from seatrial.domain.trial import Mark
from seatrial.engine.model_patience import ModelHealth, RetryLimits
from seatrial.errors import ModelFault


class RateLimitError(Exception):
    """Named as LiteLLM's; only the name and the headers matter."""

    def __init__(self, message: str = "slow down", headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.litellm_response_headers = headers or {}


class AuthenticationError(Exception):
    pass


class BadRequestError(Exception):
    pass


class ContextWindowExceededError(BadRequestError):
    pass


class Time:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class PlayedModel(BaseLLM):
    """Does one thing after another: raises, takes time, or answers."""

    def __init__(self, deeds: Sequence[Exception | Callable[[], Any] | str]) -> None:
        super().__init__()
        self.deeds = list(deeds)
        self.arguments: list[dict[str, Any]] = []

    @override
    async def call(self, prompt: str, **kwargs: Any) -> LLMResponse:
        self.arguments.append(kwargs)
        deed = self.deeds.pop(0)
        if isinstance(deed, Exception):
            raise deed
        if callable(deed):
            await deed()
            return LLMResponse(content="late")
        return LLMResponse(content=deed)

    @override
    def get_model_context_limit(self) -> int:
        return 1000

    @override
    def get_model_output_limit(self) -> int | None:
        return None


def patient(model: PlayedModel, time: Time, policy: RetryLimits | None = None, key: str | None = None) -> RetryingModel:
    timing = Timing(time, time.sleep, random.Random(1))
    return RetryingModel(model, policy or RetryLimits(), key=key, timing=timing)


async def test_a_good_answer_is_passed_on_at_once() -> None:
    time = Time()
    model = patient(PlayedModel(["hello"]), time)
    assert (await model.call("hi")).content == "hello"
    assert (time.waits, model.health.calls, model.health.requests) == ([], 1, 1)


async def test_retry_after_is_obeyed_to_the_second() -> None:
    time = Time()
    deeds = [RateLimitError(headers={"Retry-After": "61"}), RateLimitError(headers={"retry-after": "7"}), "hello"]
    model = patient(PlayedModel(deeds), time)
    assert (await model.call("hi")).content == "hello"
    assert time.waits == [61, 7]
    assert model.health.faults == {"RateLimitError": 2}
    assert model.health.lost_sec == pytest.approx(68)
    assert model.health.waited_sec >= 68


async def test_without_retry_after_the_waits_grow_to_a_limit() -> None:
    time = Time()
    model = patient(PlayedModel([RateLimitError()] * 9 + ["hello"]), time)
    await model.call("hi")
    assert all(0.5 * 2**n <= wait <= 2**n for n, wait in enumerate(time.waits[:6]))
    assert all(30 <= wait <= 60 for wait in time.waits[6:])


async def test_a_quota_window_of_a_minute_is_waited_out() -> None:
    time = Time()

    class Windowed(PlayedModel):
        @override
        async def call(self, prompt: str, **kwargs: Any) -> LLMResponse:
            if time.now < 1060:
                raise RateLimitError
            return LLMResponse(content="open again")

    assert (await patient(Windowed([]), time).call("hi")).content == "open again"


async def test_beyond_the_limit_it_is_a_fault_of_the_model_and_stays_one() -> None:
    time = Time()
    played = PlayedModel([RateLimitError()] * 100)
    model = patient(played, time, RetryLimits(limit_sec=100))
    with pytest.raises(ModelFault, match="RateLimitError"):
        await model.call("hi")
    assert sum(time.waits) <= 100
    asked = len(played.arguments)
    with pytest.raises(ModelFault):  # agents try again; the service is not asked again
        await model.call("hi")
    assert len(played.arguments) == asked


async def test_a_wait_that_cannot_fit_is_not_begun() -> None:
    time = Time()
    model = patient(PlayedModel([RateLimitError(headers={"Retry-After": "3600"})]), time, RetryLimits(limit_sec=600))
    with pytest.raises(ModelFault, match="asks to wait 3600 s"):
        await model.call("hi")
    assert time.waits == []


@pytest.mark.parametrize(
    "error", [AuthenticationError("no"), BadRequestError("no"), RateLimitError("insufficient_quota")]
)
async def test_a_refusal_is_not_waited_for(error: Exception) -> None:
    time = Time()
    model = patient(PlayedModel([error, "hello"]), time)
    with pytest.raises(ModelFault, match="refused"):
        await model.call("hi")
    assert time.waits == []


async def test_a_conversation_that_is_too_long_is_left_to_the_agent() -> None:
    model = patient(PlayedModel([ContextLengthExceededError(), "after summarising"]), Time())
    with pytest.raises(ContextLengthExceededError):
        await model.call("hi")
    assert (await model.call("hi")).content == "after summarising"
    assert model.health.faults == {}


async def test_the_key_goes_with_each_call_and_never_into_a_message() -> None:
    played = PlayedModel([RateLimitError(headers={"Retry-After": "1"}), AuthenticationError("Incorrect key sk-canary")])
    model = patient(played, Time(), key="sk-canary")
    with pytest.raises(ModelFault) as raised:
        await model.call("hi", top_p=0.9)
    assert [arguments["api_key"] for arguments in played.arguments] == ["sk-canary", "sk-canary"]
    assert played.arguments[0]["top_p"] == 0.9
    assert played.arguments[0]["max_retries"] == 0
    assert "sk-canary" not in str(raised.value)
    assert raised.value.__suppress_context__


async def test_time_that_ran_out_while_the_service_failed_is_not_the_agents() -> None:
    model = RetryingModel(PlayedModel([RateLimitError(headers={"Retry-After": "30"}), "hello"]), RetryLimits())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(model.call("hi"), 0.05)
    assert "failing" in (model.health.spoils_timeout(1000) or "")


async def test_time_that_ran_out_on_a_silent_service_is_not_the_agents() -> None:
    model = RetryingModel(PlayedModel([lambda: asyncio.sleep(30)]), RetryLimits())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(model.call("hi"), 0.05)
    assert "not answered" in (model.health.spoils_timeout(1000) or "")


async def test_time_that_ran_out_otherwise_is_the_agents_own() -> None:
    time = Time()

    async def wait_until_cancelled() -> None:
        time.now += 50
        await asyncio.Event().wait()

    model = patient(PlayedModel(["first", wait_until_cancelled]), time)
    await model.call("hi")
    time.now += 200
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(model.call("hi"), 0.05)
    assert model.health.spoils_timeout(250) is None


def test_a_tenth_of_the_time_lost_spoils_the_rest() -> None:
    assert ModelHealth(lost_sec=9).spoils_timeout(100) is None
    assert "10 of 100 seconds" in (ModelHealth(lost_sec=10).spoils_timeout(100) or "")


async def test_an_unknown_error_is_tried_three_times() -> None:
    played = PlayedModel([KeyError("choices")] * 5)
    with pytest.raises(ModelFault, match="3 times"):
        await patient(played, Time()).call("hi")
    assert len(played.arguments) == 3


def test_an_agent_in_the_sandbox_is_left_as_it_is() -> None:
    class Installed:
        pass

    agent = Installed()
    assert retry_model_calls(agent, RetryLimits()) == ModelHealth()
    assert not hasattr(agent, "_llm")


def test_retry_after_is_read_as_seconds_and_as_a_date() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    dated = format_datetime(now + timedelta(seconds=90), usegmt=True)
    assert retry_after(RateLimitError(headers={"Retry-After": "2.5"}), now) == 2.5
    assert retry_after(RateLimitError(headers={"Retry-After": dated}), now) == 90
    assert retry_after(RateLimitError(headers={"Retry-After": "-5"}), now) == 0
    assert retry_after(RateLimitError(headers={"Retry-After": "soon"}), now) is None
    assert retry_after(RateLimitError(headers={"Retry-After": "nan"}), now) is None
    assert retry_after(RateLimitError(), now) is None
    assert retry_after(ValueError(), now) is None


def test_the_most_special_class_decides() -> None:
    assert classify_model_error(ContextWindowExceededError()) is ModelError.AGENT
    assert classify_model_error(BadRequestError()) is ModelError.LASTING
    assert classify_model_error(RateLimitError()) is ModelError.PASSING
    assert classify_model_error(KeyError()) is ModelError.UNKNOWN


class PaymentRequiredError(Exception):
    pass


async def test_a_spent_budget_ends_the_agent_in_a_way_that_is_graded() -> None:
    spent = []
    model = PlayedModel(["fine", PaymentRequiredError("insufficient_quota"), "never asked"])
    retrying = RetryingModel(model, RetryLimits(), is_spent=lambda: bool(spent))
    assert (await retrying.call("a")).content == "fine"
    spent.append(True)
    for _ in range(2):  # agents try again after any exception
        with pytest.raises(NonZeroAgentExitCodeError) as ended:
            await retrying.call("b")
        assert mark_of(type(ended.value).__name__) is Mark.OVER_BUDGET
    assert len(model.arguments) == 1 and retrying.health.given_up is None


async def test_an_empty_account_of_the_provider_is_still_an_error_of_its_service() -> None:
    retrying = RetryingModel(PlayedModel([PaymentRequiredError("insufficient_quota")]), RetryLimits())
    with pytest.raises(ModelFault):
        await retrying.call("a")
