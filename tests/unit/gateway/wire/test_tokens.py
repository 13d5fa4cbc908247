"""Token ids and logprobs: the same from a stream and from a whole answer, and bounded."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from seatrial.gateway.wire import FORMATS, AnswerTokens
from seatrial.gateway.wire.tokens import MOST_TOKENS

CHAT = FORMATS["chat"]


def choice(ids: list[int], logprobs: list[float], index: int = 0) -> dict[str, Any]:
    told = [{"token": "x", "logprob": value, "top_logprobs": []} for value in logprobs]
    return {"index": index, "token_ids": ids, "logprobs": {"content": told}}


def whole(*choices: dict[str, Any], prompt: list[int]) -> AnswerTokens | None:
    content = {"prompt_token_ids": prompt, "choices": [{**each, "message": {}} for each in choices]}
    return CHAT.read_answer(json.dumps(content).encode()).tokens


def streamed(*chunks: dict[str, Any]) -> AnswerTokens | None:
    meter = CHAT.meter()
    for chunk in chunks:
        meter.feed(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    return meter.answer.tokens


PAIRS = st.lists(st.tuples(st.integers(0, 99), st.floats(-9, 0)), max_size=20)


@given(PAIRS, st.integers(1, 5), st.lists(st.integers(0, 99), min_size=1, max_size=5))
def test_a_stream_tells_the_same_as_a_whole_answer(
    pairs: list[tuple[int, float]], size: int, prompt: list[int]
) -> None:
    ids, logprobs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    one = whole(choice(ids, logprobs), prompt=prompt)
    chunks: list[dict[str, Any]] = [{"prompt_token_ids": prompt, "choices": [{"index": 0, "delta": {}}]}]
    for start in range(0, len(pairs), size):
        part = choice(ids[start : start + size], logprobs[start : start + size])
        chunks.append({"choices": [{**part, "delta": {"content": "x"}}]})
    other = streamed(*chunks)
    assert one is not None and other is not None
    if pairs:
        assert one.told() == other.told()
        assert one.told()["choices"] == [{"index": 0, "completion_token_ids": ids, "logprobs": logprobs}]
    assert one.told()["prompt_token_ids"] == other.told()["prompt_token_ids"] == prompt


def test_answers_without_them_have_none() -> None:
    assert whole({"index": 0, "logprobs": None}, prompt=[]) is None
    assert streamed({"choices": [{"index": 0, "delta": {"content": "x"}, "logprobs": None}]}) is None


def test_choices_are_kept_apart() -> None:
    found = streamed(
        {"choices": [choice([1], [], 1)]}, {"choices": [choice([2], [], 0)]}, {"choices": [choice([3], [], 1)]}
    )
    assert found is not None and [each["completion_token_ids"] for each in found.told()["choices"]] == [[2], [1, 3]]


def test_what_a_server_makes_up_is_not_kept() -> None:
    for ids in (["a"], [-1], [2**40], [True], {"a": 1}, [1.5]):
        found = AnswerTokens()
        found.saw({"choices": [{"index": 0, "token_ids": ids}]})
        assert not found and not found.is_whole
    found = AnswerTokens()
    found.saw({"choices": [{"index": 10**9, "logprobs": {"content": [{"logprob": "x"}, 3]}}, 5, {"token_ids": [1]}]})
    assert not found.is_whole and found.told()["choices"][0]["completion_token_ids"] == [1]


def test_they_are_bounded() -> None:
    found = AnswerTokens()
    for _ in range(3):
        found.saw({"choices": [{"index": 0, "token_ids": list(range(MOST_TOKENS // 2))}]})
    assert not found.is_whole and len(found.choices[0].completion_token_ids) <= MOST_TOKENS
