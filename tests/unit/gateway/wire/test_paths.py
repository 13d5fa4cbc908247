"""Which calls are open."""

from __future__ import annotations

import pytest

from seatrial.gateway.wire import FORMATS, BadCall, format_of, models_answer, models_format, passing_query

OPEN = {
    "/v1/chat/completions": "chat",
    "/chat/completions": "chat",
    "/api/v1/chat/completions": "chat",
    "/v1/embeddings": "embeddings",
    "/v1/responses": "responses",
    "/responses/compact": "responses",
    "/v1/messages": "messages",
    "/v1/messages/count_tokens": "messages",
    "/v1beta/models/gemini-2.5-pro:generateContent": "gemini",
    "/v1alpha/models/gemini-3-pro-preview:streamGenerateContent": "gemini",
    "/v1beta/models/gemini-2.5-pro:countTokens": "gemini",
}


@pytest.mark.parametrize(("path", "name"), OPEN.items())
def test_calls_of_models_are_open(path: str, name: str) -> None:
    found = format_of("POST", path)
    assert found is FORMATS[name]
    assert format_of("PUT", path) is format_of("GET", path) is None


CLOSED = [
    *(
        "/v1/files",
        "/v1/batches",
        "/v1/fine_tuning/jobs",
        "/v1/organization/usage/completions",
        "/v1/images/generations",
    ),
    *("/v1/messages/batches", "/v1/responses/resp_1", "/v1/responses/resp_1/cancel", "/v1/models", "/v1/completions"),
    *("/v1//chat/completions", "/v1/chat/completions/", "/v1/../v1/chat/completions", "/v1/%63hat/completions"),
    *("/v1/chat/completions?x", "/v1/chat/completions#x", "/v1/chat/completions\n", "//evil/v1/messages", "", "/"),
    *(
        "/v1beta/models/..:generateContent",
        "/v1beta/models/a/b:generateContent",
        "/v1beta/models/a:batchGenerateContent",
    ),
    *("/v1beta/models/a%2fb:generateContent", "/v1beta/cachedContents", "/v1/chat/completions/chatcmpl-1"),
]


@pytest.mark.parametrize("path", CLOSED)
def test_everything_else_is_closed(path: str) -> None:
    assert format_of("POST", path) is None


def test_the_list_of_models_is_ours() -> None:
    assert format_of("GET", "/v1/models") is FORMATS["chat"]
    assert format_of("GET", "/v1beta/models") is FORMATS["gemini"]
    assert models_format("/v1/models", frozenset({"anthropic-version"})) is FORMATS["messages"]
    assert models_format("/v1/models", frozenset({"authorization"})) is FORMATS["chat"]
    assert models_format("/v1/files", frozenset()) is None
    assert b'"a"' in models_answer(FORMATS["chat"], ["a"])


class TestQuery:
    STREAM = "/v1beta/models/a:streamGenerateContent"

    def test_what_agents_send_passes(self) -> None:
        assert passing_query(FORMATS["messages"], "/v1/messages", "beta=true") == "beta=true"
        assert passing_query(FORMATS["gemini"], self.STREAM, "alt=sse") == "alt=sse"
        assert passing_query(FORMATS["chat"], "/v1/chat/completions", "") == ""

    def test_a_key_stays_here(self) -> None:
        assert passing_query(FORMATS["gemini"], self.STREAM, "key=placeholder&alt=sse") == "alt=sse"

    @pytest.mark.parametrize(
        "query",
        [
            "alt=sse&fields=candidates",
            "alt=sse&$fields=a",
            "alt=sse&alt=json",
            "alt=media",
            "callback=x",
            "beta=false",
            "a",
        ],
    )
    def test_what_hides_the_usage_is_refused(self, query: str) -> None:
        with pytest.raises(BadCall):
            passing_query(FORMATS["gemini"], self.STREAM, query)

    def test_a_stream_that_is_no_event_stream_is_refused(self) -> None:
        with pytest.raises(BadCall, match="alt=sse"):
            passing_query(FORMATS["gemini"], self.STREAM, "")
        assert passing_query(FORMATS["gemini"], "/v1beta/models/a:generateContent", "") == ""

    @pytest.mark.parametrize("path", ["/v1beta/models/a:generateContent", "/v1beta/models/a:countTokens"])
    def test_a_plain_call_does_not_become_a_stream(self, path: str) -> None:
        with pytest.raises(BadCall, match="alt=sse"):
            passing_query(FORMATS["gemini"], path, "alt=sse")
        assert passing_query(FORMATS["gemini"], path, "alt=json") == "alt=json"
        with pytest.raises(BadCall, match="alt=sse"):
            passing_query(FORMATS["chat"], "/v1/chat/completions", "alt=sse")
