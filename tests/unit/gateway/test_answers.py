"""Answers of providers on their way to the agent: without the key, and read as what they are."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from seatrial.gateway.body_memory import BodyMemory
from seatrial.gateway.forward import is_stream
from seatrial.gateway.key_removal import KeyRemoval
from tests.gate_doors import CHAT, HASTY, KEY, answer, open_door, provider, request, route, status

ODD_KEY = 'sk/Odd+"key"=\u00e4'
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda key: key,
    "with its scheme": lambda key: f"Bearer {key}",
    "in lower case": lambda key: key.lower(),
    "in JSON": lambda key: json.dumps(key),
    "in an address": lambda key: quote(key, safe=""),
    "coded": lambda key: b64encode(key.encode()).decode(),
    "the whole header coded": lambda key: b64encode(f"Bearer {key}".encode()).decode(),
}


@pytest.mark.parametrize("given", [401, 400, 500, 429])
async def test_a_key_that_the_provider_repeats_stays_here(tmp_path: Path, given: int) -> None:
    said = {"error": {"message": f"Incorrect API key provided: {KEY}.", "got": f"Bearer {KEY}"}}
    echo = answer(given, said, f"X-Debug-Authorization: Bearer {KEY}", f"X-{KEY}: yes", "X-Request-Id: r")
    echo = echo.replace(b" X\r\n", f" No {KEY}\r\n".encode(), 1)
    async with provider(echo) as model, open_door(tmp_path, route(model.url), full=True) as door:
        told = await door.send(request())
    assert KEY.encode() in model.heard[0] and status(told) == given
    assert KEY.lower().encode() not in told.lower() and b"Incorrect API key provided: [REDACTED]." in told
    assert b"x-request-id: r" in told.lower()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert KEY.encode() not in kept and KEY not in str(door.noted())


async def test_nor_does_a_header_of_a_good_answer_tell_it(tmp_path: Path) -> None:
    for streams in (False, True):
        echo = answer(200, {"ok": "yes"}, f"X-Debug: {KEY}")
        folder = tmp_path / str(streams)
        folder.mkdir()
        async with provider(echo) as model, open_door(folder, route(model.url)) as door:
            told = await door.send(request(body=json.dumps({**CHAT, "stream": streams}).encode()))
        assert status(told) == 200 and KEY.encode() not in told and b"x-debug: [REDACTED]" in told


@pytest.mark.parametrize("spelled", SPELLINGS.values(), ids=list(SPELLINGS))
def test_a_key_is_found_in_its_usual_spellings(spelled: Callable[[str], str]) -> None:
    removal, text = KeyRemoval((f"Bearer {ODD_KEY}",)), spelled(ODD_KEY)
    assert text.strip('"=') not in removal.from_text(f"got {text}.")
    assert removal.from_text("nothing of it") == "nothing of it"


@pytest.mark.parametrize("memory", [BodyMemory(), BodyMemory(1)], ids=["long", "no room"])
async def test_a_long_error_is_cut_and_not_within_a_key(tmp_path: Path, memory: BodyMemory) -> None:
    """Wherever the cut is: a part of a key is a part of a secret."""
    body = (KEY * (300_000 // len(KEY))).encode()
    async with provider(answer(400, body)) as model, open_door(tmp_path, route(model.url), memory=memory) as door:
        told = await door.send(request())
    content = told.partition(b"\r\n\r\n")[2]
    assert status(told) == 400 and content.replace(b"[REDACTED]", b"") == b""


async def test_a_compressed_error_is_replaced(tmp_path: Path) -> None:
    echo = answer(401, gzip.compress(KEY.encode(), mtime=0), "Content-Encoding: gzip")
    async with provider(echo) as model, open_door(tmp_path, route(model.url)) as door:
        told = await door.send(request())
    assert status(told) == 401 and b"content-encoding" not in told.lower()
    assert "compressed" in json.loads(told.partition(b"\r\n\r\n")[2])["error"]["message"]


async def test_a_plain_answer_to_who_asked_for_a_stream_is_counted(tmp_path: Path) -> None:
    content = {"id": "x", "model": "m", "choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 7}}
    asked = request(body=json.dumps({**CHAT, "stream": True}).encode())
    broken = answer(200, content)[:-10]
    given = (broken, answer(200, content))
    async with provider(*given) as model, open_door(tmp_path, route(model.url), patience=HASTY) as door:
        told = await door.send(asked)
    assert json.loads(told.partition(b"\r\n\r\n")[2]) == content and len(model.heard) == 2
    (noted,) = door.noted()
    assert (noted.usage.input_tokens, noted.usage.output_tokens) == (40, 7) and noted.error is None


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("text/event-stream", True),
        ("application/json", False),
        ("Application/JSON; charset=utf-8", False),
        ("", True),
        ("application/x-ndjson", True),
    ],
)
def test_what_is_a_stream(kind: str, expected: bool) -> None:
    fields = (("content-type", kind),) if kind else ()
    assert is_stream(True, 200, fields) == expected
    assert not is_stream(False, 200, fields) and not is_stream(True, 400, fields)
