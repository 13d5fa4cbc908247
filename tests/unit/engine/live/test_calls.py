"""Live spending: what the gate wrote down, told as it grows."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from seatrial.domain.model_calls.model_call import CALLS_FILE, CallUsage, ModelCall
from seatrial.engine.live.calls import CallLog
from seatrial.engine.trials.redaction import Redaction
from seatrial.gateway.journal import Journal
from tests.unit.engine.live.test_tail import TRIAL

AT = datetime(2026, 1, 1, tzinfo=UTC)
USAGE = CallUsage(input_tokens=100, cached_tokens=60, output_tokens=10, reasoning_tokens=4)


def call(**more: Any) -> ModelCall:
    told = {"model": "openai/m", "format": "chat", "status": 200, "usage": USAGE, "cost_usd": 0.5, **more}
    return ModelCall(at=AT, **told)


def log(folder: Path, *secrets: str) -> CallLog:
    return CallLog(TRIAL, folder, Redaction(secrets))


def test_calls_are_told_with_the_sums_so_far(tmp_path: Path) -> None:
    journal, told = Journal(tmp_path), log(tmp_path)
    assert told.read() == []
    journal.end(journal.next_number(), call())
    journal.end(journal.next_number(), call(waited_sec=2.5, tries=2, finish_reason="stop"))
    [event] = told.read()
    assert (event.kind.value, event.job_id, event.trial_id, event.attempt) == ("trial.calls", 3, 7, 2)
    first, second = event.data["calls"]
    assert first["usage"] == {"input_tokens": 100, "cached_tokens": 60, "output_tokens": 10, "reasoning_tokens": 4}
    assert (second["tries"], second["waited_sec"], second["finish_reason"]) == (2, 2.5, "stop")
    sums = event.data["sums"]
    assert (sums["calls"], sums["cost_usd"], sums["usage"]["input_tokens"], sums["waited_sec"]) == (2, 1.0, 200, 2.5)


def test_each_call_is_told_once_and_none_is_left_out(tmp_path: Path) -> None:
    now = [1000.0]
    journal, told = Journal(tmp_path), CallLog(TRIAL, tmp_path, Redaction([]), lambda: now[0])
    for _ in range(90):
        journal.end(journal.next_number(), call())
    [first] = told.read()
    assert len(first.data["calls"]) == first.data["sums"]["calls"] < 90
    now[0] += 0.9
    assert told.read() == [], "at most once a second"
    now[0] += 0.2
    [second] = told.read()
    assert told.read() == [], "also after the second time"
    [rest] = told.read(last=True)
    counts = [len(each.data["calls"]) for each in (first, second, rest)]
    assert sum(counts) == rest.data["sums"]["calls"] == 90
    assert told.read(last=True) == []


def test_a_line_that_is_not_whole_waits_for_its_end(tmp_path: Path) -> None:
    line = call().model_dump_json(exclude_none=True) + "\n"
    place, told = tmp_path / CALLS_FILE, log(tmp_path)
    place.write_text(line + line[:50])
    [first] = told.read(last=True)
    place.write_text(line * 2)
    [second] = told.read(last=True)
    assert (first.data["sums"]["calls"], second.data["sums"]["calls"]) == (1, 2)


def test_what_is_no_call_is_passed_over(tmp_path: Path) -> None:
    place = tmp_path / CALLS_FILE
    good = call().model_dump_json(exclude_none=True)
    place.write_text("\n".join(["nonsense", "[]", json.dumps({"at": 1}), good, ""]))
    [event] = log(tmp_path).read(last=True)
    assert len(event.data["calls"]) == 1


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text(call().model_dump_json() + "\n")
    (tmp_path / CALLS_FILE).symlink_to(other)
    assert log(tmp_path).read(last=True) == []


def test_secrets_are_not_told(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.end(journal.next_number(), call(status=401, error="Incorrect key sk-canary-of-mine."))
    [event] = log(tmp_path, "sk-canary-of-mine").read(last=True)
    assert "sk-canary" not in json.dumps(event.data) and "Incorrect key" in event.data["calls"][0]["error"]
