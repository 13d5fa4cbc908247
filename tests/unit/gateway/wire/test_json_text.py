"""Reading JSON strictly, and changing one value without touching the rest."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.gateway.wire import FORMATS, BadCall, read_object
from seatrial.gateway.wire.json_text import DEEPEST, MOST_PARTS, edited, read_answer_object
from tests.properties import trying
from tests.unit.gateway.wire.samples import REQUESTS

texts = st.text(max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(texts, values, max_size=4)
layouts = st.sampled_from([(None, (",", ":")), (None, (", ", ": ")), (2, (",", ": ")), ("\t", (" ,\r\n", " : "))])


@given(content=objects, layout=layouts, ascii_only=st.booleans())
@trying(60)
def test_every_object_is_read_as_json_reads_it(
    content: dict[str, object], layout: tuple[int | str | None, tuple[str, str]], ascii_only: bool
) -> None:
    indent, separators = layout
    text = json.dumps(content, indent=indent, separators=separators, ensure_ascii=ascii_only)
    read = read_object(f" \n{text}\t".encode(errors="surrogatepass") if ascii_only else f" \n{text}\t".encode())
    assert {name: member.value for name, member in read.members.items()} == content
    for member in read.members.values():
        assert json.loads(read.text[member.start : member.end]) == member.value


@given(content=objects, name=texts, value=st.integers(0, 9999) | texts)
@trying(60)
def test_a_change_changes_nothing_else(content: dict[str, object], name: str, value: int | str) -> None:
    read = read_object(json.dumps(content, indent=1).encode())
    changed = json.loads(edited(read.text, [read.replaced(name, value)]))
    assert changed == {**content, name: value}


@given(text=st.binary(max_size=200))
@trying(300)
def test_any_bytes_are_an_object_or_refused(text: bytes) -> None:
    try:
        read = read_object(text)
    except BadCall:
        return
    assert isinstance(json.loads(text), dict)
    assert edited(read.text, []) == text


@given(text=st.text(alphabet='{}[]",:\\u0018eE+-.ntf /*\ud800', max_size=60))
@trying(500)
def test_what_is_read_is_what_every_strict_reader_accepts(text: str) -> None:
    body = text.encode(errors="surrogatepass")
    try:
        read_object(body)
    except BadCall:
        return
    assert isinstance(json.loads(body.decode()), dict)


REFUSED = {
    "nothing": b"",
    "no object": b"[]",
    "two values": b"{} {}",
    "more after it": b'{"a":1}x',
    "a comma at the end": b'{"a":1,}',
    "no comma": b'{"a":1 "b":2}',
    "a comma first": b'{,"a":1}',
    "no colon": b'{"a" 1}',
    "a name without quotes": b"{a:1}",
    "single quotes": b"{'a':1}",
    "a comment": b'{"a":1 /* b */}',
    "a byte order mark": b'\xef\xbb\xbf{"a":1}',
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "UTF-16 without a mark": '{"a":1}'.encode("utf-16-le"),
    "invalid UTF-8": b'{"a":"\xff"}',
    "an overlong slash": b'{"a":"\xc0\xaf"}',
    "a NUL byte": b'{"a":"\x00"}',
    "a NUL between": b'{"a":1}\x00',
    "a bare line feed in a string": b'{"a":"\n"}',
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":[-Infinity]}',
    "a name twice": b'{"model":"a","model":"b"}',
    "a name twice by an escape": b'{"model":"a","\\u006dodel":"b"}',
    "a name twice, deep inside": b'{"a":[{"b":{"c":1,"c":2}}]}',
    "a number with many digits": b'{"a":' + b"9" * 5000 + b"}",
    "an unfinished string": b'{"a":"b',
    "an unfinished object": b'{"a":{"b":1}',
    "too deep": b'{"a":' + b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1) + b"}",
    "so deep that a parser ends": b'{"a":' + b"[" * 100_000,
    "deep objects": b'{"a":' * 50_000,
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED.keys())
def test_what_could_be_read_differently_is_refused(body: bytes) -> None:
    with pytest.raises(BadCall):
        read_object(body)


ACCEPTED = {
    "an empty object": b"{}",
    "spaces": b' {\n"a" :\t1 , "b":2\r} ',
    "NUL as an escape": b'{"a":"\\u0000"}',
    "half a pair of surrogates": b'{"a":"\\ud800"}',
    "a huge float": b'{"a":1e999}',
    "many digits": b'{"a":' + b"9" * 300 + b"}",
    "equal names in different objects": b'{"a":{"b":1},"c":{"b":1}}',
    "as deep as is allowed": b'{"a":' + b"[" * DEEPEST + b"]" * DEEPEST + b"}",
}


@pytest.mark.parametrize("body", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_unusual_but_plain_bodies_keep_their_bytes(body: bytes) -> None:
    assert edited(read_object(body).text, []) == body


BOMBS = {
    "objects": b'{"a":[' + b"{}," * (MOST_PARTS // 2 + 1) + b"{}]}",
    "lists": b'{"a":[' + b"[]," * (MOST_PARTS // 2 + 1) + b"[]]}",
    "numbers": b'{"a":[' + b"1," * (MOST_PARTS + 1) + b"1]}",
}


@pytest.mark.parametrize("body", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_takes_no_memory(body: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BadCall):
            read_object(body)
        assert read_answer_object(body) is None
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * len(body)


def test_the_last_of_many_names_twice_is_found() -> None:
    """Comparing each name with all others would take hours."""
    names = [f'"{number}":0' for number in range(200_000)]
    with pytest.raises(BadCall, match="'199999' occurs twice"):
        read_object(f'{{"a":{{{",".join([*names, names[-1]])}}}}}'.encode())


def test_a_long_prompt_of_code_is_no_bomb() -> None:
    body = json.dumps({"model": "a", "messages": [{"content": "f({'a': [1, 2]}, \"b\\n\")\n" * 100_000}]}).encode()
    assert body.count(b",") + body.count(b"[") + body.count(b"{") > MOST_PARTS // 2
    assert read_object(body + b" " * 10).get("model") == "a"
    longer = json.dumps({"model": "a", "prompt": '[{,\\"' * 400_000}).encode()
    assert longer.count(b",") + longer.count(b"[") > MOST_PARTS
    assert read_object(longer).get("model") == "a"


def test_a_lightened_object_is_changed_in_the_same_way() -> None:
    """A long prompt is forgotten and its text stays, so every change of a request is still possible."""
    long = {"role": "user", "content": "x" * 3000}
    schema = {"maxOutputTokens": 900, "candidateCount": 1, "responseSchema": {"enum": ["y" * 2000]}}
    for name, more in (
        ("chat", {"messages": [long], "stream_options": {"include_obfuscation": False}}),
        ("responses", {"input": "z" * 3000, "instructions": "w" * 3000}),
        ("messages", {"messages": [long], "max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 8000}}),
        ("gemini", {"contents": [{"parts": [{"text": "v" * 3000}]}], "generationConfig": schema}),
    ):
        path, body = REQUESTS[name]
        written = json.dumps({**body, **more}).encode()
        wire, read, light = FORMATS[name], read_object(written), read_object(written)
        light.lighten()
        assert light.text == read.text and sum(len(str(each.value)) for each in light.members.values()) < 1000
        for options in ({}, {"max_output_tokens": 50}, {"tell_usage": True}, {"max_output_tokens": 50, "model": "o"}):
            wanted = {"model": wire.read_request(path, read).model, **options}
            assert wire.prepare(light, **wanted) == wire.prepare(written, **wanted)
