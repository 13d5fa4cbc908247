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
    "a group of processes": ("Process Group PGID: 62", "Process Group PGID: 7105"),
    "a process": ("sleep runs\nPID 62 ppid=7", "sleep runs\nPID 63 ppid=12"),
    "a folder of mktemp": ("made /tmp/tmp.TXzXSnOhlG", "made /tmp/tmp.Kys8pUiAdK"),
    "a file of Python's tempfile": ("open /tmp/tmpab12cd3_.py", "open /tmp/tmp9xk_1zzq.py"),
    "a session's folder": ("/tmp/scratch-pad-1fa29ce4-aqin6vqd/a.txt", "/tmp/scratch-pad-03cd77e1-zz_1x0k9/a.txt"),
    "the machine's kernel": ("OS Version: Linux 6.18.44-fc-v490", "OS Version: Linux 6.1.0-18-amd64"),
    "what uname tells": (
        "$ uname -a\nLinux task-1a 6.1.0-18-amd64 #1 SMP Debian 6.1.76-1 (2024-02-01) x86_64 GNU/Linux",
        "$ uname -a\nLinux task-2b 5.15.0 #87~22.04-Ubuntu SMP x86_64 GNU/Linux",
    ),
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
    "ids that a task names": ("Order ID: 118732\nCancel it", "Order ID: 118733\nCancel it"),
    "ids without a kind": ("the user with id 17", "the user with id 18"),
    "ids of groups": ("gid=1000(ann)", "gid=1001(ann)"),
    "words that end like a label": ("rapid 5, stupid: 6", "rapid 6, stupid: 5"),
    "a file that somebody named": ("open /tmp/tmp_files_a", "open /tmp/tmp_files_b"),
    "the name before a session": ("/tmp/notes-1fa29ce4-aqin6vqd", "/tmp/plans-1fa29ce4-aqin6vqd"),
    "a name with words": ("/tmp/my-release-document", "/tmp/my-release-contents"),
    "a folder that somebody named": ("/tmp/tmp.build-one", "/tmp/tmp.build-two"),
    "distributions": ("Alpine Linux 3.20.1", "Alpine Linux 3.19.0"),
    "a kernel to build": ("Build Linux 6.9.1 here", "Build Linux 6.9.2 here"),
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


def test_an_id_in_the_first_line_of_a_tools_output_is_left_out() -> None:
    def gave(output: str) -> str:
        body = {"model": "m", "input": [{"type": "function_call_output", "call_id": "c", "output": output}]}
        return FORMATS["responses"].digest_of(json.dumps(body).encode())

    assert gave("Chunk ID: 8feead\nOutput:\nok\n") == gave("Chunk ID: 118732\nOutput:\nok\n")
    assert gave("Chunk ID: 8feead\nOutput:\nok\n") != gave("Chunk ID: 8feead\nOutput:\nno\n")
    assert gave("Output:\nOrder ID: 8feead\n") != gave("Output:\nOrder ID: 118732\n")


def test_the_text_shows_where_two_requests_differ() -> None:
    texts = [steady_text(read_object(json.dumps({"model": "m", "input": [word]}).encode())) for word in ("a", "b")]
    differences = [pair for pair in zip(*(text.split("\n") for text in texts), strict=True) if pair[0] != pair[1]]
    assert differences == [('"a"', '"b"')]
