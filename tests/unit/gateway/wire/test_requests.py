"""Reading requests and preparing what is forwarded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.gateway.wire import FORMATS, BadCall, CallRequest, read_object
from tests.properties import trying
from tests.unit.gateway.wire.samples import REQUESTS

by_format = pytest.mark.parametrize("name", FORMATS)
LIMITED = [name for name in FORMATS if name != "embeddings"]
IN_BODY = [name for name in FORMATS if name != "gemini"]


def read(name: str, **changes: Any) -> CallRequest:
    path, body = REQUESTS[name]
    return FORMATS[name].read_request(path, json.dumps({**body, **changes}).encode())


def prepared(name: str, body: dict[str, Any], **wanted: Any) -> dict[str, Any]:
    written = FORMATS[name].prepare(json.dumps(body).encode(), **{"model": body.get("model", "m"), **wanted})
    found: dict[str, Any] = json.loads(written)
    return found


@by_format
def test_a_request_tells_its_model_length_and_kind(name: str) -> None:
    found = read(name)
    assert found.format == name
    assert found.model in ("gpt-5.2", "text-embedding-3-small", "claude-opus-5", "gemini-2.5-pro")
    assert found.max_output_tokens == (0 if name == "embeddings" else 500)
    assert found.streams == (name != "embeddings")
    assert 1 <= found.input_tokens_estimate < 50


layouts = st.sampled_from([(None, (",", ":")), (None, (", ", ": ")), (2, (",", ": "))])


@by_format
@given(
    layout=layouts,
    ascii_only=st.booleans(),
    more=st.dictionaries(st.sampled_from(["temperature", "seed", "x", "metadata"]), st.floats(0, 1) | st.text()),
)
@trying(50)
def test_a_body_passes_byte_for_byte_if_nothing_changes(
    name: str, layout: tuple[int | None, tuple[str, str]], ascii_only: bool, more: dict[str, Any]
) -> None:
    indent, separators = layout
    path, body = REQUESTS[name]
    written = json.dumps({**more, **body}, indent=indent, separators=separators, ensure_ascii=ascii_only).encode()
    wire = FORMATS[name]
    found = wire.read_request(path, written)
    assert wire.prepare(written, model=found.model) == written
    assert wire.prepare(written, model=found.model, max_output_tokens=500) == written
    assert wire.prepare(read_object(written), model=found.model) == written


@pytest.mark.parametrize("name", IN_BODY)
def test_another_model_replaces_only_its_name(name: str) -> None:
    path, body = REQUESTS[name]
    written = json.dumps(body, indent=3)
    model = FORMATS[name].read_request(path, written.encode()).model
    changed = FORMATS[name].prepare(written.encode(), model='other/"model"')
    assert changed.decode() == written.replace(json.dumps(model), json.dumps('other/"model"'))


def test_geminis_model_is_in_the_path() -> None:
    gemini = FORMATS["gemini"]
    assert gemini.prepare_path("/v1beta/models/a-1:countTokens", "b.2") == "/v1beta/models/b.2:countTokens"
    assert FORMATS["chat"].prepare_path("/v1/chat/completions", "b") == "/v1/chat/completions"


@pytest.mark.parametrize("name", LIMITED)
class TestClamp:
    def test_lowers_the_limit(self, name: str) -> None:
        path, body = REQUESTS[name]
        wire = FORMATS[name]
        changed = wire.prepare(json.dumps(body).encode(), model="m", max_output_tokens=100)
        assert wire.read_request(path, changed).max_output_tokens == 100

    def test_does_not_raise_it(self, name: str) -> None:
        path, body = REQUESTS[name]
        wire = FORMATS[name]
        changed = wire.prepare(json.dumps(body).encode(), model="m", max_output_tokens=9_000)
        assert wire.read_request(path, changed).max_output_tokens == 500

    @pytest.mark.parametrize("absent", ["left out", "null", "negative"])
    def test_sets_it_where_there_is_none(self, name: str, absent: str) -> None:
        path, body = REQUESTS[name]
        wire = FORMATS[name]
        body = json.loads(json.dumps(body))
        inside = body["generationConfig"] if name == "gemini" else body
        (limit,) = (each for each in inside if each.startswith("max"))
        if absent == "left out":
            del inside[limit]
        else:
            inside[limit] = None if absent == "null" else -1
        written = json.dumps(body).encode()
        assert wire.read_request(path, written).max_output_tokens is None
        changed = wire.prepare(written, model="m", max_output_tokens=100)
        assert wire.read_request(path, changed).max_output_tokens == 100

    @given(layout=layouts, most=st.integers(16, 499))
    @trying(30)
    def test_keeps_the_rest(self, name: str, layout: tuple[int | None, tuple[str, str]], most: int) -> None:
        path, body = REQUESTS[name]
        indent, separators = layout
        written = json.dumps({**body, "temperature": 1.0}, indent=indent, separators=separators)
        wire = FORMATS[name]
        model = wire.read_request(path, written.encode()).model
        changed = wire.prepare(written.encode(), model=model, max_output_tokens=most)
        assert changed.decode() == written.replace("500", str(most))


class TestClampOfSomeFormats:
    def test_all_answers_share_what_is_left(self) -> None:
        body = {**REQUESTS["chat"][1], "n": 4}
        assert prepared("chat", body, max_output_tokens=100)["max_tokens"] == 25
        assert read("chat", n=4).most_output_tokens == 2000

    def test_both_names_of_chats_limit_are_lowered(self) -> None:
        body = {**REQUESTS["chat"][1], "max_completion_tokens": 90}
        changed = prepared("chat", body, max_output_tokens=50)
        assert (changed["max_tokens"], changed["max_completion_tokens"]) == (50, 50)
        assert read("chat", max_completion_tokens=900).max_output_tokens == 900

    def test_a_response_has_at_least_what_openai_accepts(self) -> None:
        assert prepared("responses", REQUESTS["responses"][1], max_output_tokens=3)["max_output_tokens"] == 16
        assert read("responses").least_output_tokens == 16

    def test_thinking_stays_below_the_limit(self) -> None:
        body = {**REQUESTS["messages"][1], "max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 8000}}
        changed = prepared("messages", body, max_output_tokens=2000)
        assert changed["max_tokens"] == 2000
        assert changed["thinking"] == {"type": "enabled", "budget_tokens": 1999}
        assert read("messages", thinking=body["thinking"]).least_output_tokens == 1025

    def test_adaptive_thinking_has_no_budget(self) -> None:
        body = {**REQUESTS["messages"][1], "thinking": {"type": "adaptive"}}
        assert prepared("messages", body, max_output_tokens=20)["thinking"] == {"type": "adaptive"}
        assert read("messages", thinking={"type": "adaptive"}).least_output_tokens == 1

    @pytest.mark.parametrize("config", [{}, None, {"temperature": 1}])
    def test_geminis_configuration_is_made(self, config: dict[str, Any] | None) -> None:
        body = {"contents": [], "generationConfig": config}
        changed = prepared("gemini", body, max_output_tokens=70)
        assert changed["generationConfig"] == {**(config or {}), "maxOutputTokens": 70}
        assert prepared("gemini", {}, max_output_tokens=70) == {"generationConfig": {"maxOutputTokens": 70}}

    def test_geminis_second_spelling_is_clamped(self) -> None:
        body = {"contents": [], "generation_config": {"max_output_tokens": 500, "candidate_count": 2}}
        changed = prepared("gemini", body, max_output_tokens=100)
        assert changed["generation_config"]["max_output_tokens"] == 50

    def test_embeddings_have_no_limit(self) -> None:
        body = REQUESTS["embeddings"][1]
        assert prepared("embeddings", body, max_output_tokens=1, tell_usage=True) == body


class TestUsageOfAStream:
    @pytest.mark.parametrize(
        "options", ["left out", None, {}, {"include_usage": False}, {"include_obfuscation": False}]
    )
    def test_is_asked_for(self, options: Any) -> None:
        body = {**REQUESTS["chat"][1], "stream_options": options}
        if options == "left out":
            del body["stream_options"]
        kept = options if isinstance(options, dict) else {}
        assert prepared("chat", body, tell_usage=True)["stream_options"] == {**kept, "include_usage": True}
        assert not FORMATS["chat"].read_request("", json.dumps(body).encode()).tells_usage

    def test_is_not_asked_for_twice(self) -> None:
        written = json.dumps({**REQUESTS["chat"][1], "stream_options": {"include_usage": True}}).encode()
        assert FORMATS["chat"].prepare(written, model="gpt-5.2", tell_usage=True) == written
        assert FORMATS["chat"].read_request("", written).tells_usage

    def test_is_not_asked_for_without_a_stream(self) -> None:
        written = json.dumps({**REQUESTS["chat"][1], "stream": False}).encode()
        assert FORMATS["chat"].prepare(written, model="gpt-5.2", tell_usage=True) == written

    @pytest.mark.parametrize("name", [name for name in FORMATS if name != "chat"])
    def test_comes_unasked_elsewhere(self, name: str) -> None:
        path, body = REQUESTS[name]
        written = json.dumps(body).encode()
        found = FORMATS[name].read_request(path, written)
        assert found.tells_usage
        assert FORMATS[name].prepare(written, model=found.model, tell_usage=True) == written

    def test_and_a_clamp_at_once(self) -> None:
        body = {"messages": [], "model": "a", "stream": True}
        changed = prepared("chat", body, model="b", max_output_tokens=5, tell_usage=True)
        assert changed == {
            "messages": [],
            "model": "b",
            "stream": True,
            "max_completion_tokens": 5,
            "stream_options": {"include_usage": True},
        }


HOSTILE: dict[str, tuple[str, dict[str, Any]]] = {
    "the model's name in another case": ("chat", {"Model": "expensive"}),
    "the model's name with a long s": ("chat", {"\u017ftream": False}),
    "the model's name with the Kelvin sign": ("chat", {"max_to\u212aens": 1}),
    "no model": ("chat", {"model": None}),
    "a model that is a list": ("chat", {"model": ["a", "b"]}),
    "a model with a line feed": ("chat", {"model": "a\nb"}),
    "a model with a NUL": ("responses", {"model": "a\0"}),
    "a model that is a path": ("messages", {"model": "../../files"}),
    "half a pair of surrogates as model": ("chat", {"model": "\ud800"}),
    "a very long model": ("chat", {"model": "a" * 300}),
    "a stream that is a word": ("chat", {"stream": "true"}),
    "a stream that is a number": ("messages", {"stream": 1}),
    "a limit that is a text": ("chat", {"max_tokens": "10"}),
    "a limit that is true": ("messages", {"max_tokens": True}),
    "a limit that is a fraction": ("responses", {"max_output_tokens": 10.5}),
    "a limit that is a float": ("messages", {"max_tokens": 1e3}),
    "no answers": ("chat", {"n": 0}),
    "answers without end": ("chat", {"n": 10**6}),
    "answers that are a text": ("chat", {"n": "2"}),
    "options that are a list": ("chat", {"stream_options": []}),
    "options with a number": ("chat", {"stream_options": {"include_usage": 1}}),
    "an option in another case": ("chat", {"stream_options": {"Include_Usage": False, "include_usage": True}}),
    "a budget for thinking in another case": ("messages", {"thinking": {"Budget_Tokens": 9000}}),
    "tools that are an object": ("chat", {"tools": {"type": "function"}}),
    "tools that are texts": ("messages", {"tools": ["bash"]}),
    "a tool of a strange type": ("messages", {"tools": [{"type": {}}]}),
    "further models that are a text": ("chat", {"models": "expensive"}),
    "a further model without a name": ("chat", {"models": [{}]}),
    "a response in the background": ("responses", {"background": True}),
    "a stored prompt": ("responses", {"prompt": {"id": "pmpt_1"}}),
    "stored settings": ("chat", {"preset": "expensive"}),
    "a model that is stored settings": ("chat", {"model": "@preset/expensive"}),
    "fallbacks that the provider chooses": ("messages", {"fallbacks": "default"}),
    "a fallback with its own limit": ("messages", {"fallbacks": [{"model": "a", "max_tokens": 64000}]}),
    "thinking that is a text": ("messages", {"thinking": "enabled"}),
    "a budget for thinking that is a text": ("messages", {"thinking": {"type": "enabled", "budget_tokens": "1"}}),
    "a tier that is a list": ("chat", {"service_tier": ["priority"]}),
    "another model in the body than in the path": ("gemini", {"model": "models/gemini-ultra"}),
    "Gemini's configuration twice": ("gemini", {"generation_config": {"maxOutputTokens": 9}}),
    "Gemini's limit twice": ("gemini", {"generationConfig": {"maxOutputTokens": 9, "max_output_tokens": 9000}}),
    "Gemini's limit in a third spelling": ("gemini", {"generationConfig": {"MaxOutputTokens": 9}}),
    "Gemini's limit as a text": ("gemini", {"generationConfig": {"maxOutputTokens": "9000"}}),
    "Gemini's configuration as a list": ("gemini", {"generationConfig": []}),
}


@pytest.mark.parametrize(("name", "changes"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_request_that_could_be_read_in_two_ways_is_refused(name: str, changes: dict[str, Any]) -> None:
    with pytest.raises(BadCall):
        read(name, **changes)


ELSEWHERE: dict[str, Any] = {
    "fallbacks": [{"model": "expensive"}],
    "context_window_fallbacks": [{"m": ["expensive"]}],
    "mock_response": "hello",
    "mock_testing_fallbacks": True,
    "providerOptions": {"gateway": {"models": ["expensive"]}},
    "api_base": "https://elsewhere.example",
    "base_url": "https://elsewhere.example",
    "api_key": "sk-of-another",
    "user_config": {"model_list": []},
    "extra_body": {"models": ["expensive"]},
    "extra_headers": {"x-model": "expensive"},
}


@pytest.mark.parametrize("name", IN_BODY)
@pytest.mark.parametrize("field", ELSEWHERE)
def test_what_leads_a_call_elsewhere_is_refused(name: str, field: str) -> None:
    if (name, field) != ("messages", "fallbacks"):  # Anthropic's own: further models, which are checked
        with pytest.raises(BadCall, match=field):
            read(name, **{field: ELSEWHERE[field]})
    with pytest.raises(BadCall):
        read(name, **{field.title(): ELSEWHERE[field]})
    assert read(name, **{field: None}).model


HARMLESS: dict[str, tuple[str, dict[str, Any]]] = {
    "a name that only looks alike": ("chat", {"models_": 1, "xmodel": 2}),
    "a model with a tag": ("chat", {"model": "deepseek/deepseek-r1:free"}),
    "nulls": ("chat", {"stream_options": None, "n": None, "tools": None, "models": None, "service_tier": None}),
    "one answer": ("chat", {"n": 1}),
    "a limit of nothing": ("messages", {"max_tokens": 0}),
    "no background": ("responses", {"background": False, "store": True}),
    "fallbacks with names": ("messages", {"fallbacks": [{"model": "claude-haiku-5-5"}]}),
    "the path's model in the body": ("gemini", {"model": "models/gemini-2.5-pro"}),
    "names that only look like a proxy's": ("chat", {"fallback": 1, "hammock_": 2, "metadata": {"api_key": "x"}}),
    "NUL in the prompt": ("chat", {"messages": [{"role": "user", "content": "\0"}]}),
    "half a pair of surrogates in the prompt": ("chat", {"messages": [{"role": "user", "content": "\udfff"}]}),
}


@pytest.mark.parametrize(("name", "changes"), HARMLESS.values(), ids=HARMLESS.keys())
def test_a_plain_request_passes(name: str, changes: dict[str, Any]) -> None:
    path, body = REQUESTS[name]
    written = json.dumps({**body, **changes}).encode()
    found = FORMATS[name].read_request(path, written)
    if "model" not in changes or name != "gemini":
        assert FORMATS[name].prepare(written, model=found.model) == written
    assert len(FORMATS[name].digest_of(written)) == 64


hostile_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
hostile_names = st.sampled_from(
    [
        *("model", "models", "stream", "stream_options", "n", "tools", "max_tokens", "thinking", "fallbacks", "input"),
        *("messages", "contents", "generationConfig", "generation_config", "service_tier", "system", "prompt"),
    ]
) | st.text(max_size=6)


@by_format
@given(changes=st.dictionaries(hostile_names, hostile_values, max_size=5), most=st.none() | st.integers(0, 2**60))
@trying(150)
def test_any_object_is_refused_or_handled(name: str, changes: dict[str, Any], most: int | None) -> None:
    path, body = REQUESTS[name]
    wire = FORMATS[name]
    written = json.dumps({**body, **changes}).encode()
    try:
        found = wire.read_request(path, written)
    except BadCall:
        return
    json.loads(wire.prepare(written, model="m", max_output_tokens=most, tell_usage=True), parse_constant=pytest.fail)
    assert wire.digest_of(written)
    assert found.input_tokens_estimate > 0
    assert 1 <= found.choices <= 128


class TestWhatARequestMayCost:
    def test_other_models_are_named(self) -> None:
        assert read("chat", models=["a", "b"]).other_models == ("a", "b")
        assert read("messages", fallbacks=[{"model": "a"}]).other_models == ("a",)
        assert read("messages", tools=[{"type": "advisor_20260301", "model": "a"}]).other_models == ("a",)
        assert read("responses", tools=[{"type": "image_generation", "model": "a"}]).other_models == ("a",)

    def test_tools_of_the_provider_are_named(self) -> None:
        own = [
            {"type": "function", "name": "a"},
            {"type": "web_search"},
            {"type": "shell", "environment": {"type": "local"}},
        ]
        assert read("responses", tools=own).provider_tools == ("web_search",)
        assert read("chat", web_search_options={"a": 1}).provider_tools == ("web_search_options",)
        assert read("chat", plugins=[{"id": "web"}]).provider_tools == ("plugins",)
        for name in ("chat", "responses", "messages"):
            for field in ("web_search_options", "plugins", "search_parameters"):
                assert read(name, **{field: {}}).provider_tools == (field,)
                assert read(name, **{field: None}).provider_tools == ()
            assert read(name, enable_search=True).provider_tools == ("enable_search",)
            assert read(name, Enable_Search=1).provider_tools == ("Enable_Search",)
            assert read(name, enable_search=False).provider_tools == ()
        mixed = [{"name": "a", "input_schema": {}}, {"type": "bash_20250124"}, {"type": "web_fetch_20250910"}]
        assert read("messages", tools=mixed).provider_tools == ("web_fetch_20250910",)
        assert read("gemini", tools=[{"functionDeclarations": []}, {"googleSearch": {}}]).provider_tools == (
            "googleSearch",
        )

    def test_other_ways_of_serving_are_named(self) -> None:
        assert read("chat", service_tier="priority").ways == ("priority",)
        assert read("messages", speed="fast", inference_geo="us").ways == ("fast", "us")

    def test_counting_tokens_costs_nothing(self) -> None:
        for name, path in {"messages": "/v1/messages/count_tokens", "gemini": "/v1beta/models/a:countTokens"}.items():
            found = FORMATS[name].read_request(path, json.dumps(REQUESTS[name][1]).encode())
            assert not found.counts
            assert not FORMATS[name].counts(path)
            assert found.max_output_tokens == 0
        assert read("messages").counts

    def test_a_picture_is_not_counted_by_its_bytes(self) -> None:
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 2_000_000}}
        found = read("chat", messages=[{"role": "user", "content": [picture]}])
        assert 1000 < found.input_tokens_estimate < 3000

    def test_a_text_that_speaks_of_base64_is_counted_by_its_bytes(self) -> None:
        text = 'use "base64" and ;base64, and encrypted_content ' * 1000
        found = read("chat", messages=[{"role": "user", "content": [{"type": "text", "text": text}]}])
        assert 10_000 < found.input_tokens_estimate < 15_000

    def test_a_long_prompt_is_counted_by_its_bytes(self) -> None:
        found = read("messages", messages=[{"role": "user", "content": "word " * 8000}], system="é" * 1000)
        assert 10_000 < found.input_tokens_estimate < 12_000
