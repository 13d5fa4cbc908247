"""Metering streams: however the network splits them, the bytes and the counts are the same."""

from __future__ import annotations

import json
import tracemalloc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.domain.model_calls.model_call import CallUsage
from seatrial.gateway.wire import FORMATS, StreamMeter
from seatrial.gateway.wire.event_stream import EventSplitter
from tests.properties import trying
from tests.unit.gateway.wire.samples import (
    CHAT,
    MESSAGES,
    SAMPLES,
    USAGE_CHUNK,
    Sample,
    chunk,
    event,
    gemini_part,
    typed,
)

by_format = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.format)


def fed(meter: StreamMeter, stream: bytes, cuts: list[int]) -> bytes:
    """Feeds the stream in pieces that end at ``cuts``."""
    places = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(places)]
    return b"".join([*(meter.feed(piece) for piece in pieces), meter.end()])


@by_format
def test_a_stream_tells_its_usage_reason_and_model(sample: Sample) -> None:
    answer = sample.metered().answer
    assert answer.usage == sample.usage
    assert answer.finish_reason == sample.finish_reason
    assert answer.model == sample.model
    assert answer.error is None


@by_format
@given(cuts=st.lists(st.integers(0, 10_000), max_size=40))
@trying(100)
def test_any_split_gives_the_same_bytes_and_the_same_meter(sample: Sample, cuts: list[int]) -> None:
    meter = sample.wire.meter()
    assert fed(meter, sample.stream, cuts) == sample.stream
    assert meter.answer == sample.metered().answer
    assert meter.output_tokens_so_far == sample.metered().output_tokens_so_far


@by_format
def test_single_bytes_give_the_same(sample: Sample) -> None:
    meter = sample.wire.meter()
    assert fed(meter, sample.stream, list(range(len(sample.stream)))) == sample.stream
    assert meter.answer == sample.metered().answer


@by_format
def test_whole_events_pass_at_once(sample: Sample) -> None:
    meter = sample.wire.meter()
    for each in sample.events:
        assert meter.feed(each) == each


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@given(cuts=st.lists(st.integers(0, 10_000), max_size=40))
@trying(50)
def test_every_kind_of_line_end_is_read(end: str, cuts: list[int]) -> None:
    stream = CHAT.stream.replace(b"\n", end.encode())
    meter = CHAT.wire.meter()
    assert fed(meter, stream, cuts) == stream
    assert meter.answer.usage == CHAT.usage


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@given(cuts=st.lists(st.integers(0, 10_000), max_size=40))
@trying(50)
def test_events_end_at_blank_lines_only(end: str, cuts: list[int]) -> None:
    events = [each.replace(b"\n", end.encode()) for each in MESSAGES.events]
    stream, splitter = b"".join(events), EventSplitter()
    places = [0, *sorted(cut % len(stream) for cut in cuts), len(stream)]
    parts = [part for start, stop in pairwise(places) for part, whole in splitter.feed(stream[start:stop]) if whole]
    # After a bare carriage return, a line feed could still belong to it.
    assert [*parts, splitter.rest()] == (events if end == "\r" else [*events, b""])


@given(
    stream=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300), max_size=20), name=st.sampled_from([*FORMATS])
)
@trying(300)
def test_bytes_that_are_no_stream_pass_unchanged(stream: bytes, cuts: list[int], name: str) -> None:
    assert fed(FORMATS[name].meter(tell_usage=True), stream, cuts) == stream


hostile_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
names = [
    *("type", "choices", "usage", "delta", "error", "index", "message", "response", "model", "id", "content_block"),
    *("candidates", "usageMetadata", "content", "parts", "finish_reason", "stop_reason", "iterations", "cost"),
    *("promptTokenCount", "input_tokens", "output_tokens", "prompt_tokens"),
]


@given(
    contents=st.lists(st.dictionaries(st.sampled_from(names), hostile_values, max_size=6), max_size=4),
    kind=st.sampled_from(["message_start", "message_delta", "response.completed", "content_block_delta", "error", ""]),
    name=st.sampled_from([*FORMATS]),
)
@trying(300)
def test_events_of_a_strange_shape_pass_and_break_nothing(
    contents: list[dict[str, object]], kind: str, name: str
) -> None:
    stream = b"".join(event({**content, "type": kind} if kind else content) for content in contents)
    meter = FORMATS[name].meter()
    assert fed(meter, stream, []) == stream
    assert meter.output_tokens_so_far >= 0
    assert meter.cut("over").endswith(b"\n\n") or meter.ended
    FORMATS[name].read_answer(stream)
    for content in contents:
        FORMATS[name].read_answer(json.dumps(content).encode())


@pytest.mark.parametrize("strange", [[], {}, [1], {"a": []}, None, True, 5, "", 10**400])
@pytest.mark.parametrize("name", names)
def test_no_value_of_an_event_breaks_a_meter(name: str, strange: object) -> None:
    for sample in SAMPLES:
        meter = sample.wire.meter(tell_usage=True)
        for each in sample.events:
            if not each.startswith(b":") and b"[DONE]" not in each:
                content = json.loads(each[each.index(b"{") :])
                changed = event(_with(content, name, strange))
                meter.feed(changed)
        assert meter.output_tokens_so_far >= 0
        assert meter.answer.usage.total >= 0
        assert isinstance(meter.cut("over") + meter.broken("away"), bytes)


def _with(content: object, name: str, value: object) -> Any:
    """The same with another value wherever this name occurs."""
    if isinstance(content, list):
        return [_with(each, name, value) for each in content]
    if isinstance(content, dict):
        return {key: value if key == name else _with(inner, name, value) for key, inner in content.items()}
    return content


class TestUsageThatWeAskedFor:
    def test_is_taken_out(self) -> None:
        meter = CHAT.wire.meter(tell_usage=True)
        assert fed(meter, CHAT.stream, []) == CHAT.stream.replace(USAGE_CHUNK, b"")
        assert meter.answer.usage == CHAT.usage

    @given(cuts=st.lists(st.integers(0, 10_000), max_size=40))
    @trying(100)
    def test_is_taken_out_of_any_split(self, cuts: list[int]) -> None:
        meter = CHAT.wire.meter(tell_usage=True)
        assert fed(meter, CHAT.stream, cuts) == CHAT.stream.replace(USAGE_CHUNK, b"")

    def test_stays_if_the_agent_asked_too(self) -> None:
        assert USAGE_CHUNK in fed(CHAT.wire.meter(tell_usage=False), CHAT.stream, [])

    def test_in_a_chunk_with_text_does_not_take_the_text_out(self) -> None:
        both = chunk({"content": "x"}, usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3})
        meter = CHAT.wire.meter(tell_usage=True)
        assert meter.feed(both) == both
        assert meter.answer.usage.output_tokens == 2

    def test_a_chunk_without_choices_and_usage_passes(self) -> None:
        """Azure's first chunk has only the results of its filter."""
        first = event({"id": "", "choices": [], "prompt_filter_results": []})
        assert CHAT.wire.meter(tell_usage=True).feed(first) == first


class TestEstimate:
    @by_format
    def test_grows_with_what_is_seen(self, sample: Sample) -> None:
        meter = sample.wire.meter()
        counts = []
        for each in sample.events:
            meter.feed(each)
            counts.append(meter.output_tokens_so_far)
        assert counts == sorted(counts)
        assert counts[-1] == sample.usage.output_tokens

    def test_is_at_least_one_token_a_piece_and_four_bytes_a_token(self) -> None:
        meter = CHAT.wire.meter()
        for _ in range(10):
            meter.feed(chunk({"content": "a"}))
        assert meter.output_tokens_so_far == 10
        meter.feed(chunk({"content": "a" * 4000}))
        assert meter.output_tokens_so_far == 1002

    def test_counts_reasoning_that_is_shown(self) -> None:
        meter = CHAT.wire.meter()
        meter.feed(chunk({"reasoning_content": "b" * 400}))
        assert meter.output_tokens_so_far == 100


def long_pieces(name: str) -> list[bytes]:
    """A stream that shows 1000 tokens of output and did not tell its end."""
    text = "word " * 80
    match name:
        case "chat":
            first = chunk({"content": ""}, usage={"prompt_tokens": 7, "completion_tokens": 1})
            return [first, *[chunk({"content": text})] * 10]
        case "responses":
            begun = {"status": "in_progress", "usage": {"input_tokens": 7, "output_tokens": 1}}
            piece = typed({"type": "response.output_text.delta", "delta": text})
            return [typed({"type": "response.created", "response": begun}), *[piece] * 10]
        case "messages":
            delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
            return [*MESSAGES.events[:2], *[typed(delta)] * 10, typed({"type": "content_block_stop", "index": 0})]
    return [gemini_part(text, promptTokenCount=7, candidatesTokenCount=1)] * 10


class TestAStreamWithoutAnEnd:
    """The agent closed it, the gate cut it, or the provider broke it off."""

    @pytest.mark.parametrize("name", [sample.format for sample in SAMPLES])
    @pytest.mark.parametrize("way", ["closed", "cut", "broken", "ended by the provider"])
    def test_used_at_least_what_was_seen(self, name: str, way: str) -> None:
        meter = FORMATS[name].meter()
        for piece in long_pieces(name):
            meter.feed(piece)
        if way == "cut":
            assert meter.cut("The budget is used up.")
        elif way == "broken":
            assert meter.broken("The model's service broke off its answer.")
        elif way == "ended by the provider":
            meter.end()
        usage = meter.answer.usage
        assert usage.is_known and usage.input_tokens and usage.output_tokens == meter.output_tokens_so_far >= 1000

    def test_costs_more_than_the_price_of_its_beginning(self) -> None:
        meter = CHAT.wire.meter()
        meter.feed(chunk({"content": ""}, usage={"prompt_tokens": 7, "completion_tokens": 1, "cost": 0.001}))
        assert meter.answer.cost_usd == 0.001
        meter.feed(chunk({"content": "word " * 80}))
        assert meter.answer.cost_usd is None

    def test_tells_nothing_if_the_provider_did_not(self) -> None:
        meter = CHAT.wire.meter()
        meter.feed(chunk({"content": "word " * 80}))
        assert meter.answer.usage == CallUsage()

    @pytest.mark.parametrize("sample", [CHAT, MESSAGES], ids=lambda sample: sample.format)
    def test_but_with_its_last_usage_used_what_was_told(self, sample: Sample) -> None:
        """A client may close the connection before the mark of the end."""
        stream = sample.stream.replace(b"Look: ", b"Look: " * 1000).replace(b'"ls"', b"ls" * 1000)
        meter = sample.wire.meter()
        meter.feed(b"".join(part + b"\n\n" for part in stream.split(b"\n\n")[:-2]))
        assert not meter.ended and meter.answer.usage == sample.usage


class TestAWholeAnswerInsteadOfAStream:
    @pytest.mark.parametrize("name", ["chat", "responses", "messages", "gemini"])
    @pytest.mark.parametrize("after", [b"", b"\n", b"\n\n"])
    @given(cuts=st.lists(st.integers(0, 10_000), max_size=5), indent=st.none() | st.integers(0, 2))
    @trying(20)
    def test_is_read(self, name: str, after: bytes, cuts: list[int], indent: int | None) -> None:
        usage = {"prompt_tokens": 20, "completion_tokens": 5, "input_tokens": 20, "output_tokens": 5}
        content = {"usage": usage, "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 5}}
        body, meter = json.dumps(content, indent=indent).encode(), FORMATS[name].meter(tell_usage=True)
        assert fed(meter, body + after, cuts) == body + after
        assert meter.answer == FORMATS[name].read_answer(body) and meter.ended
        assert (meter.answer.usage.input_tokens, meter.answer.usage.output_tokens) == (20, 5)


class TestErrors:
    def test_in_a_stream_are_noted(self) -> None:
        chat, messages, gemini, responses = (
            FORMATS[name].meter() for name in ("chat", "messages", "gemini", "responses")
        )
        chat.feed(event({"error": {"message": "no", "code": 502}}))
        messages.feed(typed({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}))
        gemini.feed(event({"error": {"code": 503, "message": "away", "status": "UNAVAILABLE"}}))
        responses.feed(typed({"type": "error", "code": "server_error", "message": "sorry", "sequence_number": 1}))
        errors = [meter.answer.error for meter in (chat, messages, gemini, responses)]
        assert errors == ["502: no", "overloaded_error: Overloaded", "503: away", "server_error: sorry"]

    def test_a_failed_response_tells_why(self) -> None:
        meter = FORMATS["responses"].meter()
        failed = {"status": "failed", "error": {"code": "server_error", "message": "sorry"}, "usage": None}
        meter.feed(typed({"type": "response.failed", "response": failed}))
        assert (meter.answer.error, meter.answer.finish_reason) == ("server_error: sorry", "failed")


class TestMemory:
    def test_an_event_without_an_end_is_not_held(self) -> None:
        splitter = EventSplitter(longest=1000)
        passed = sum(len(part) for _ in range(100) for part, _ in splitter.feed(b"x" * 500))
        assert passed >= 100 * 500 - 1000

    @pytest.mark.parametrize("end", [b"\n", b"\r\n"])
    @given(cuts=st.lists(st.integers(0, 10_000), max_size=20), step=st.none() | st.integers(1, 9))
    @trying(60)
    def test_a_long_event_passes_unread_and_the_next_is_read(
        self, end: bytes, cuts: list[int], step: int | None
    ) -> None:
        long = event({"choices": [], "usage": {"prompt_tokens": 1}, "padding": "y" * 3000})
        first, long, last = (each.replace(b"\n", end) for each in (chunk({"content": "a"}), long, USAGE_CHUNK))
        splitter, stream = EventSplitter(longest=2000), first + long + last
        inner = sorted(cut % len(stream) for cut in cuts) if step is None else range(0, len(stream), step)
        pieces = [stream[start:stop] for start, stop in pairwise([0, *inner, len(stream)])]
        parts = [part for piece in pieces for part in splitter.feed(piece)]
        assert b"".join(part for part, _ in parts) == stream
        assert [part for part, whole in parts if whole] == [first, last]

    @pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.format)
    def test_a_stream_that_tells_ever_new_names_does_not_fill_it(self, sample: Sample) -> None:
        meter = sample.wire.meter(tell_usage=True)
        tracemalloc.start()
        try:
            for number in range(300):
                usage = {f"{number}{'x' * 10_000}": 1}
                content = {"usage": usage, "usageMetadata": usage, "choices": [{"index": number}]}
                meter.feed(event({"type": "message_delta", "response": content, **content}))
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert kept < 500_000

    def test_a_bomb_in_an_event_is_not_read(self) -> None:
        bomb = event('{"choices":[' + "{}," * 600_000 + "{}]}")
        assert CHAT.wire.meter().feed(bomb) == bomb

    def test_deep_nesting_in_an_event_breaks_nothing(self) -> None:
        deep = event("[" * 200_000)
        assert MESSAGES.wire.meter().feed(deep) == deep
