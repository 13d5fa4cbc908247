"""The full record: what is written of calls, without secrets, up to a limit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from seatrial.domain.model_calls.replay import RECORD_FILE
from seatrial.gateway.recording import Recording, read_bytes, written
from seatrial.gateway.wire import DIGEST_RULES

SECRET = "sk-canary-123456"
FIELDS = (("content-type", "application/json"), ("set-cookie", "a=b"), ("date", "now"), ("retry-after", "3"))


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / RECORD_FILE).read_bytes().splitlines()]


def test_a_call_is_its_request_its_head_its_pieces_and_its_end(tmp_path: Path) -> None:
    recording = Recording(tmp_path, [])
    call = recording.call("/v1/chat/completions", "d1", '{"model": "ä"}')
    call.head(200, FIELDS)
    call.piece(b"data: 1\n\n")
    call.piece(b"\xff\x00")
    call.end("odd", over_budget=False, broken=True, given_up=False)
    recording.close()
    first, *lines = lines_of(tmp_path)
    assert first == {"digests": DIGEST_RULES} and call.is_kept
    assert lines[0] == {"n": 1, "path": "/v1/chat/completions", "digest": "d1", "request": '{"model": "ä"}'}
    assert lines[1] == {
        "n": 1,
        "status": 200,
        "headers": [["content-type", "application/json"], ["retry-after", "3"]],
    }  # neither cookies nor dates
    assert [read_bytes(line) for line in lines[2:4]] == [b"data: 1\n\n", b"\xff\x00"]
    assert lines[4] == {"n": 1, "end": {"error": "odd", "broken": True}}


def test_calls_at_the_same_time_do_not_mix(tmp_path: Path) -> None:
    recording = Recording(tmp_path, [])
    one, two = recording.call("/a", "1", "{}"), recording.call("/b", "2", "{}")
    for call in (one, two, one):
        call.piece(b"x")
    recording.close()
    assert [line.get("n") for line in lines_of(tmp_path)] == [None, 1, 2, 1, 2, 1]


def test_secrets_are_in_neither_requests_nor_answers(tmp_path: Path) -> None:
    recording = Recording(tmp_path, [SECRET])
    for split in range(len(SECRET) + 1):
        call = recording.call("/", "d", f'{{"key": "{SECRET}"}}')
        call.head(401, ())
        call.piece(b"before " + SECRET[:split].encode())
        call.piece(SECRET[split:].encode() + b" after")
        call.end(None, over_budget=False, broken=False, given_up=False)
    recording.close()
    assert SECRET.encode() not in (tmp_path / RECORD_FILE).read_bytes()
    answers: dict[int, bytes] = {}
    for line in lines_of(tmp_path):
        answers[line.get("n", 0)] = answers.get(line.get("n", 0), b"") + (read_bytes(line) or b"")
    assert set(answers.values()) == {b"", b"before [REDACTED] after"}


def test_the_record_ends_at_its_limit_and_says_which_calls_it_has(tmp_path: Path) -> None:
    recording = Recording(tmp_path, [], most_bytes=300)
    kept = []
    for size in (10, 500, 10):
        call = recording.call("/", "d", "{}")
        call.piece(b"x" * size)
        call.end(None, over_budget=False, broken=False, given_up=False)
        kept.append(call.is_kept)
    recording.close()
    assert kept == [True, False, False]  # no gap: what follows the first that did not fit is not kept, either
    assert (tmp_path / RECORD_FILE).stat().st_size <= 300 + 20
    assert all(isinstance(line, dict) for line in lines_of(tmp_path))


def test_an_abandoned_call_has_no_end(tmp_path: Path) -> None:
    recording = Recording(tmp_path, [])
    call = recording.call("/", "d", "{}")
    call.abandon()
    call.end(None, over_budget=False, broken=False, given_up=False)
    recording.close()
    assert not call.is_kept and not any("end" in line for line in lines_of(tmp_path))


def test_a_link_in_the_place_of_the_record_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("")
    (tmp_path / "try").mkdir()
    (tmp_path / "try" / RECORD_FILE).symlink_to(target)
    recording = Recording(tmp_path / "try", [])
    assert not recording.call("/", "d", "{}").is_kept
    recording.close()
    assert target.read_text() == ""


@given(st.binary(max_size=50))
def test_all_bytes_are_read_as_they_were_written(data: bytes) -> None:
    assert read_bytes(json.loads(json.dumps(written(data)))) == data
