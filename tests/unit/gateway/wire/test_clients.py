"""What the gateway itself sends, as OpenAI's own client reads it. Other clients were tried by hand: see the docs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, get_args

import httpx
import openai
import pytest

from seatrial.gateway.wire import FORMATS, RefusalKind, StreamMeter
from tests.unit.gateway.wire.samples import CHAT, GEMINI, MESSAGES, RESPONSES, SAMPLES, Sample, chunk, event, typed

KINDS: tuple[RefusalKind, ...] = get_args(RefusalKind)


class Provider:
    """Answers every request with one answer, and counts them."""

    def __init__(self, status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> None:
        self.asked = 0
        self._answer = (status, headers, body)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        status, headers, body = self._answer
        return httpx.Response(status, headers=dict(headers), content=body)

    @property
    def client(self) -> Any:
        http = httpx.Client(transport=httpx.MockTransport(self))
        return openai.OpenAI(api_key="none", base_url="http://gate/v1", http_client=http)


def ask_chat(client: Any, **more: Any) -> Any:
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}], **more)


def ask_responses(client: Any, **more: Any) -> Any:
    return client.responses.create(model="m", input="Hi", **more)


ASK: dict[str, Callable[..., Any]] = {"chat": ask_chat, "responses": ask_responses}
SSE = (("content-type", "text/event-stream"),)


class TestRefusals:
    @pytest.mark.parametrize("name", ASK)
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("stream", [False, True])
    def test_the_client_stops_after_one(self, name: str, kind: RefusalKind, stream: bool) -> None:
        provider = Provider(*FORMATS[name].refusal(kind, "The budget is used up."))
        with pytest.raises(openai.APIStatusError) as caught:
            ASK[name](provider.client, stream=stream)
        assert provider.asked == 1
        assert "The budget is used up." in str(caught.value)

    def test_a_rate_limit_of_the_provider_is_tried_again(self) -> None:
        """The twin: the client does try again, unless it is told not to."""
        provider = Provider(429, (("retry-after-ms", "1"),), b'{"error":{"message":"slow down"}}')
        with pytest.raises(openai.RateLimitError):
            ask_chat(provider.client)
        assert provider.asked == 3

    @pytest.mark.parametrize("name", ASK)
    def test_a_used_up_budget_is_a_quota_error(self, name: str) -> None:
        provider = Provider(*FORMATS[name].refusal("over_budget", "Spent $5.00 of $5.00."))
        with pytest.raises(openai.APIStatusError) as caught:
            ASK[name](provider.client)
        assert caught.value.code == caught.value.type == "insufficient_quota"

    def test_an_unknown_model_is_not_found(self) -> None:
        provider = Provider(*FORMATS["chat"].refusal("unknown_model", "No such model."))
        with pytest.raises(openai.NotFoundError) as caught:
            ask_chat(provider.client)
        assert caught.value.code == "model_not_found"

    @pytest.mark.parametrize("name", FORMATS)
    @pytest.mark.parametrize("kind", KINDS)
    def test_every_refusal_has_the_shape_of_its_provider(self, name: str, kind: RefusalKind) -> None:
        message = 'Not "this" one.\n\ud800'
        status, headers, body = FORMATS[name].refusal(kind, message)
        content = json.loads(body)
        assert status >= 400
        assert dict(headers)["x-should-retry"] == "false"
        assert content["error"]["message"].endswith(message)
        if name == "messages":
            assert content["type"] == "error"
            assert content["error"]["type"].endswith(("_error", "_too_large"))
        elif name == "gemini":
            assert content["error"]["code"] == status
            assert content["error"]["status"].isupper()
        else:
            assert {"type", "code", "param"} < content["error"].keys()


def cut_after(sample: Sample, events: int, part: int = 0) -> tuple[bytes, bytes]:
    """The whole stream that a client gets if it is cut after so many events and a part of the next; and the cut."""
    meter = sample.wire.meter()
    passed = b"".join(meter.feed(each) for each in sample.events[:events])
    passed += meter.feed(sample.events[events][:part])
    cut = meter.cut("The budget is used up.")
    return passed + cut, cut


class TestCuts:
    @pytest.mark.parametrize("part", [0, 40])
    def test_a_chat_ends_as_too_long(self, part: int) -> None:
        stream, _ = cut_after(CHAT, 4, part)
        chunks = list(ask_chat(Provider(200, SSE, stream).client, stream=True))
        assert "".join(each.choices[0].delta.content or "" for each in chunks) == "Grüße, 世界"
        assert chunks[-1].choices[0].finish_reason == "length"
        assert (chunks[-1].id, chunks[-1].model) == ("chatcmpl-1", CHAT.model)

    def test_every_answer_of_a_chat_ends(self) -> None:
        meter = FORMATS["chat"].meter()
        begun = chunk({"content": "a"}) + chunk({"content": "b"}).replace(b'"index": 0', b'"index": 1')
        ended = chunk({}, "stop").replace(b'"index": 0', b'"index": 1')
        meter.feed(begun + ended)
        (last,) = (json.loads(each[6:]) for each in meter.cut("").split(b"\n\n") if each.startswith(b"data: {"))
        assert [choice["index"] for choice in last["choices"]] == [0]

    def test_a_chat_that_had_not_begun_ends_too(self) -> None:
        chunks = list(ask_chat(Provider(200, SSE, FORMATS["chat"].meter().cut("")).client, stream=True))
        assert [each.choices[0].finish_reason for each in chunks] == ["length"]

    @pytest.mark.parametrize("part", [0, 40])
    def test_a_response_ends_as_incomplete(self, part: int) -> None:
        stream, _ = cut_after(RESPONSES, 2, part)
        events = list(ask_responses(Provider(200, SSE, stream).client, stream=True))
        assert [each.type for each in events] == [
            *("response.created", "response.output_text.delta", "response.incomplete")
        ]
        last = events[-1]
        openai.types.responses.Response.model_validate(last.response.model_dump())
        assert last.response.id == "resp_1"
        assert last.response.incomplete_details.reason == "max_output_tokens"
        assert last.sequence_number == 2

    def test_a_message_closes_its_block_and_ends(self) -> None:
        _, cut = cut_after(MESSAGES, 7, 30)
        kinds = [json.loads(line[6:])["type"] for line in cut.split(b"\n") if line.startswith(b"data: ")]
        assert kinds == ["content_block_stop", "message_delta", "message_stop"]
        assert b'"index": 1' in cut
        assert b'"stop_reason": "max_tokens"' in cut

    def test_a_message_between_two_blocks_closes_none(self) -> None:
        _, cut = cut_after(MESSAGES, 5)
        assert b"content_block_stop" not in cut

    def test_a_message_that_had_not_begun_is_an_error(self) -> None:
        assert b"event: error\n" in FORMATS["messages"].meter().cut("over")

    def test_gemini_ends_as_too_long(self) -> None:
        _, cut = cut_after(GEMINI, 1, 10)
        assert json.loads(cut[6:])["candidates"][0]["finishReason"] == "MAX_TOKENS"

    @pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.format)
    def test_nothing_follows_a_cut(self, sample: Sample) -> None:
        for end in (StreamMeter.cut, StreamMeter.broken):
            meter = sample.wire.meter()
            meter.feed(sample.events[0] + sample.events[1][:20])
            assert end(meter, "over")
            assert meter.end() == b""

    @pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.format)
    def test_a_stream_that_has_ended_is_not_cut(self, sample: Sample) -> None:
        meter = sample.metered()
        assert meter.cut("late") == meter.broken("late") == b""


class TestBrokenStreams:
    def test_a_chat_raises(self) -> None:
        stream = CHAT.events[0] + FORMATS["chat"].meter().broken("The provider closed the connection.")
        with pytest.raises(openai.APIError, match="The provider closed"):
            list(ask_chat(Provider(200, SSE, stream).client, stream=True))

    def test_a_response_fails(self) -> None:
        meter = FORMATS["responses"].meter()
        stream = meter.feed(RESPONSES.events[0]) + meter.broken("The provider closed the connection.")
        last = list(ask_responses(Provider(200, SSE, stream).client, stream=True))[-1]
        assert last.type == "response.failed"
        assert last.response.error.message == "The provider closed the connection."

    def test_a_whole_chat_is_read_to_its_end(self) -> None:
        chunks = list(ask_chat(Provider(200, SSE, CHAT.stream).client, stream=True))
        assert chunks[-1].usage.total_tokens == 1290


class TestModels:
    def test_openais_client_reads_the_list(self) -> None:
        body = FORMATS["chat"].models(["a/b", "c"])
        provider = Provider(200, (("content-type", "application/json"),), body)
        assert [model.id for model in provider.client.models.list()] == ["a/b", "c"]

    def test_the_others_have_their_shapes(self) -> None:
        messages, gemini = (json.loads(FORMATS[name].models(["a"])) for name in ("messages", "gemini"))
        assert messages["data"][0]["id"] == messages["last_id"] == "a"
        assert gemini["models"][0]["name"] == "models/a"


@pytest.mark.parametrize("strange", [float("nan"), float("inf"), "x" * 1000, []])
def test_a_cut_repeats_nothing_that_is_no_json(strange: object) -> None:
    for sample, name in ((CHAT, "created"), (RESPONSES, "created_at")):
        meter = sample.wire.meter()
        meter.feed(event({"type": "response.created", name: strange, "response": {name: strange, "id": "a"}}))
        data = meter.cut("over").split(b"data: ")[1].split(b"\n")[0]
        json.loads(data, parse_constant=pytest.fail)
        assert len(data) < 1500


def test_the_meter_of_a_cut_stream_keeps_what_was_told() -> None:
    meter = FORMATS["messages"].meter()
    meter.feed(MESSAGES.events[0] + typed({"type": "ping"}) + event("{broken"))
    meter.cut("over")
    assert meter.answer.usage.input_tokens == 1000
