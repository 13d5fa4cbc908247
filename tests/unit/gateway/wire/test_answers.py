"""Reading whole answers: tokens by kind, the provider's own price, why it ended."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.domain.model_calls.model_call import CallUsage
from seatrial.gateway.wire import FORMATS, Answer
from tests.properties import trying


def answer(name: str, content: dict[str, Any]) -> Answer:
    return FORMATS[name].read_answer(json.dumps(content).encode())


def chat_usage(**usage: Any) -> CallUsage:
    return answer("chat", {"choices": [], "usage": usage}).usage


def test_chat() -> None:
    found = answer(
        "chat",
        {
            "model": "gpt-5.2-2025-12-11",
            "service_tier": "priority",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}],
            "usage": {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
        },
    )
    usage = CallUsage(input_tokens=10, cached_tokens=4, cache_write_tokens=2, output_tokens=5, reasoning_tokens=3)
    assert found == Answer(usage=usage, finish_reason="stop", model="gpt-5.2-2025-12-11", ways=("priority",))


class TestOtherProvidersOfChat:
    def test_reasoning_that_is_only_in_the_total(self) -> None:
        """xAI counts it beside the completion, Google's chat in the total alone."""
        beside = {"completion_tokens_details": {"reasoning_tokens": 30}}
        assert chat_usage(prompt_tokens=10, completion_tokens=5, total_tokens=45, **beside).output_tokens == 35
        assert chat_usage(prompt_tokens=10, completion_tokens=5, total_tokens=45).output_tokens == 35

    def test_reasoning_within_the_completion_is_not_counted_twice(self) -> None:
        within = {"completion_tokens_details": {"reasoning_tokens": 3}}
        assert chat_usage(prompt_tokens=10, completion_tokens=5, total_tokens=15, **within).output_tokens == 5

    def test_other_names_of_cached_tokens(self) -> None:
        assert chat_usage(prompt_tokens=10, completion_tokens=1, prompt_cache_hit_tokens=8).cached_tokens == 8
        made = chat_usage(prompt_tokens=9, completion_tokens=1, cache_creation_input_tokens=5)
        assert made.cache_write_tokens == 5

    def test_openrouters_price(self) -> None:
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.0125}
        assert answer("chat", {"usage": usage}).cost_usd == 0.0125
        details = {"upstream_inference_cost": 0.2}
        assert answer("chat", {"usage": {**usage, "cost_details": details}}).cost_usd == 0.0125
        own_key = {**usage, "cost": 0.01, "is_byok": True, "cost_details": details}
        assert answer("chat", {"usage": own_key}).cost_usd == pytest.approx(0.21)

    @pytest.mark.parametrize("cost", [-1, "1", True, None, float("inf"), float("nan"), {"total": 1}, 10**30])
    def test_a_price_that_is_none_is_not_read(self, cost: Any) -> None:
        assert answer("chat", {"usage": {"cost": cost}}).cost_usd is None

    @pytest.mark.parametrize("number", [-1, "5", True, None, 1.5, 10**30, [], float("nan")])
    def test_a_count_that_is_none_is_not_read(self, number: Any) -> None:
        assert chat_usage(prompt_tokens=number, completion_tokens=number) == CallUsage()

    def test_a_float_that_is_whole_is_read(self) -> None:
        assert chat_usage(prompt_tokens=5.0, completion_tokens=1).input_tokens == 5


def test_embeddings() -> None:
    found = answer("embeddings", {"object": "list", "data": [], "usage": {"prompt_tokens": 8, "total_tokens": 8}})
    assert found.usage == CallUsage(input_tokens=8, output_tokens=0)
    assert found.usage.is_known


def test_responses() -> None:
    usage = {
        "input_tokens": 9,
        "output_tokens": 4,
        "total_tokens": 13,
        "cost": 0.5,
        "input_tokens_details": {"cached_tokens": 5},
        "output_tokens_details": {"reasoning_tokens": 2},
    }
    found = answer("responses", {"model": "m", "status": "completed", "service_tier": "flex", "usage": usage})
    told = CallUsage(input_tokens=9, cached_tokens=5, output_tokens=4, reasoning_tokens=2)
    assert found == Answer(usage=told, finish_reason="completed", cost_usd=0.5, model="m", ways=("flex",))
    short = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert answer("responses", short).finish_reason == "max_output_tokens"


class TestMessages:
    USAGE = {"input_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 20, "output_tokens": 7}

    def test_the_prompt_contains_what_was_cached(self) -> None:
        found = answer("messages", {"model": "m", "stop_reason": "end_turn", "usage": self.USAGE})
        told = CallUsage(input_tokens=33, cached_tokens=10, cache_write_tokens=20, output_tokens=7)
        assert found == Answer(usage=told, finish_reason="end_turn", model="m")

    def test_parts_that_are_not_in_the_totals_are_added(self) -> None:
        iterations = [
            {"type": "compaction", "input_tokens": 1000, "output_tokens": 100},
            {"type": "advisor_message", "input_tokens": 500, "output_tokens": 50, "model": "x"},
            {"type": "message", "input_tokens": 3, "output_tokens": 7},
        ]
        found = answer("messages", {"usage": {**self.USAGE, "iterations": iterations}}).usage
        assert (found.input_tokens, found.output_tokens) == (1533, 157)

    def test_a_dearer_way_is_told(self) -> None:
        assert answer("messages", {"usage": {**self.USAGE, "speed": "fast"}}).ways == ("fast",)
        assert answer("messages", {"usage": {**self.USAGE, "inference_geo": "us"}}).ways == ("us",)
        usual = {"speed": "standard", "inference_geo": "global", "service_tier": "priority"}
        assert answer("messages", {"usage": {**self.USAGE, **usual}}).ways == ("standard",)

    def test_a_count_of_tokens(self) -> None:
        assert answer("messages", {"input_tokens": 2095}).usage == CallUsage(input_tokens=2095)


class TestGemini:
    def test_thoughts_are_output(self) -> None:
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 20, "totalTokenCount": 35}
        content = {"candidates": [{"finishReason": "MAX_TOKENS"}], "usageMetadata": usage, "modelVersion": "g"}
        told = CallUsage(input_tokens=10, output_tokens=25, reasoning_tokens=20)
        assert answer("gemini", content) == Answer(usage=told, finish_reason="MAX_TOKENS", model="g")

    def test_counts_of_zero_are_left_out(self) -> None:
        found = answer("gemini", {"usageMetadata": {"promptTokenCount": 10}}).usage
        assert (found.input_tokens, found.output_tokens) == (10, 0)

    def test_a_prompt_that_was_blocked(self) -> None:
        assert answer("gemini", {"promptFeedback": {"blockReason": "SAFETY"}}).finish_reason == "SAFETY"

    def test_a_count_of_tokens(self) -> None:
        assert answer("gemini", {"totalTokens": 31}).usage == CallUsage(input_tokens=31)


ERRORS = {
    "chat": {"error": {"message": "Incorrect API key", "type": "invalid_request_error", "code": "invalid_api_key"}},
    "responses": {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}},
    "messages": {"type": "error", "error": {"type": "invalid_api_key", "message": "Incorrect API key"}},
    "gemini": {"error": {"code": "invalid_api_key", "message": "Incorrect  API\nkey", "status": "UNAUTHENTICATED"}},
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_read(name: str) -> None:
    found = answer(name, ERRORS[name])
    assert found.error == "invalid_api_key: Incorrect API key"
    assert not found.usage.is_known


@given(body=st.binary(max_size=200), name=st.sampled_from([*FORMATS]))
@trying(200)
def test_an_answer_that_is_none_tells_nothing(body: bytes, name: str) -> None:
    assert FORMATS[name].read_answer(body) == Answer()


@pytest.mark.parametrize("strange", [[], {}, [[1]], True, -5, 10**400, "x", 1e308])
def test_no_value_of_an_answer_breaks_its_reading(strange: Any) -> None:
    usage = dict.fromkeys(
        [
            *("prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details", "input_tokens", "cost"),
            *("output_tokens", "cache_creation", "iterations", "speed", "is_byok", "cost_details", "promptTokenCount"),
        ],
        strange,
    )
    parts = [{**usage, "type": strange, "finish_reason": strange, "finishReason": strange}]
    whole = {**usage, "usage": {**usage, "iterations": parts}, "usageMetadata": usage, "choices": parts}
    whole |= {"candidates": parts, "model": strange, "status": strange, "error": strange, "service_tier": strange}
    for content in (whole, {**whole, "usage": strange, "choices": strange, "candidates": strange}):
        for name in FORMATS:
            assert answer(name, content).usage.total >= 0


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"usage":' * 50_000, b'{"a":[' + b"{}," * 600_000 + b"{}]}"])
def test_a_hostile_answer_breaks_nothing(body: bytes) -> None:
    for wire in FORMATS.values():
        assert wire.read_answer(body) == Answer()
