"""Digests of requests: equal if only volatile parts differ, and different if anything else does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seatrial.gateway.wire import FORMATS, read_object, steady_text


def digest(**body: Any) -> str:
    return FORMATS["chat"].digest_of(json.dumps({"model": "m", **body}).encode())


def said(text: str) -> str:
    return digest(messages=[{"role": "user", "content": text}])


VOLATILE = {
    "a date": ("Today is 2026-11-16.", "Today is 2027-01-02."),
    "a moment": ("at 2026-11-16T16:07:55.123Z", "at 2026-11-17T01:02:03+01:00"),
    "a clock": ("It is 16:07:55 now", "It is 9:01 AM now"),
    "date's words": ("Mon Nov 16 16:07:55 UTC 2026", "Tue Dec  1 06:07:55 UTC 2026"),
    "a date in words": ("Today's date is Monday, November 16, 2026", "Today's date is Friday, May 1, 2026"),
    "seconds since 1970": ("started=1763300000", "started=1763309999"),
    "milliseconds since 1970": ("t 1763300000123,", "t 1763300000999,"),
    "a fraction of them": ("t=1763300000.25", "t=1763300001.75"),
    "a duration": ("Wall time: 0.0123 seconds", "Wall time: 1.5 seconds"),
    "milliseconds": ("took 35ms", "took 40ms"),
    "a list of files": ("-rw-r--r-- 1 root Nov 16 16:07 a.txt", "-rw-r--r-- 1 root Dec  3 09:00 a.txt"),
    "a line of a log": ("begin\n2026-11-16 16:07:55,123 INFO", "begin\n2026-11-17 01:00:00,999 INFO"),
    "a clock after a line end": ("top\n16:07:55 up", "top\n9:00:01 up"),
    "the sandbox's name": ("root@task-abc123:/app# ls", "root@task-xyz789:/app# ls"),
    "the sandbox's name at home": ("agent@seatrial-0a1b:~$ ls", "agent@seatrial-9f8e:~$ ls"),
    "a random id": ("session 0f8fad5b-d9cb-469f-a165-70867728950e", "session 7c9e6679-7425-40de-944b-e07fc1f90ae7"),
}


@pytest.mark.parametrize(("one", "other"), VOLATILE.values(), ids=VOLATILE.keys())
def test_what_says_when_is_left_out(one: str, other: str) -> None:
    assert said(one) == said(other)


LASTING = {
    "words": ("List the files", "List all files"),
    "numbers": ("Write 17 lines", "Write 18 lines"),
    "versions": ("numpy 1.26.4", "numpy 2.0.1"),
    "years": ("since 2024", "since 2025"),
    "sizes": ("4096 bytes", "8192 bytes"),
    "digests": ("commit 0a1b2c3d", "commit 0a1b2c3e"),
    "a person": ("ask April", "ask Marcus"),
    "a file's name": ("open v2026.txt", "open v2027.txt"),
    "ports": ("listen on port 8080", "listen on port 8081"),
    "what follows a month's beginning": ("Marker 5", "Marker 6"),
    "addresses": ("10.0.0.1:22", "10.0.0.2:22"),
    "case": ("Yes", "yes"),
    "mail": ("write to ann@example.org", "write to bob@example.org"),
    "a user in a prompt": ("root@a:/app# ls", "ann@a:/app# ls"),
    "a folder in a prompt": ("root@a:/app# ls", "root@a:/tmp# ls"),
    "packages": ("npm i codex@latest", "npm i codex@next"),
}


@pytest.mark.parametrize(("one", "other"), LASTING.values(), ids=LASTING.keys())
def test_what_is_asked_stays(one: str, other: str) -> None:
    assert said(one) != said(other)


def test_names_of_sessions_are_left_out() -> None:
    assert digest(metadata={"user_id": "a"}, prompt_cache_key="1", user="x") == digest(user="y")
    assert digest(temperature=1) != digest(temperature=0)
    assert digest(stream=True) != digest(stream=False)


def test_the_model_and_the_tools_are_part_of_it() -> None:
    assert FORMATS["chat"].digest_of(b'{"model":"a"}') != FORMATS["chat"].digest_of(b'{"model":"b"}')
    assert digest(tools=[{"name": "a"}]) != digest(tools=[{"name": "b"}])


def test_layout_and_order_do_not_matter() -> None:
    one, other = b'{"a":1,"model":"m"}', b'{\n "model": "m", "a": 1 }'
    assert FORMATS["chat"].digest_of(one) == FORMATS["chat"].digest_of(other)


def test_ids_of_calls_are_numbered_in_their_order() -> None:
    def calls(first: str, second: str, answered: str) -> str:
        made = {"role": "assistant", "tool_calls": [{"id": first}, {"id": second}]}
        return digest(messages=[made, {"role": "tool", "tool_call_id": answered, "content": ""}])

    assert calls("a", "b", "a") == calls("x", "y", "x")
    assert calls("a", "b", "a") != calls("a", "b", "b")


def test_the_text_shows_where_two_requests_differ() -> None:
    texts = [steady_text(read_object(json.dumps({"model": "m", "input": [word]}).encode())) for word in ("a", "b")]
    differences = [pair for pair in zip(*(text.split("\n") for text in texts), strict=True) if pair[0] != pair[1]]
    assert differences == [('"a"', '"b"')]
