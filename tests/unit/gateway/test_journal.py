"""The record of calls: whole lines, those of a killed worker included."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

from seatrial.domain.model_calls.model_call import CALLS_FILE, CallSums, CallUsage, CostBy, ModelCall
from seatrial.domain.model_calls.prices import CallCost
from seatrial.gateway.journal import BEGUN, Journal, read_calls

WRITES = """
import sys, time
from pathlib import Path
from tests.unit.gateway.test_journal import AT, call, made
from seatrial.gateway.journal import Journal
journal = Journal(Path(sys.argv[1]))
for number in range(5):
    made(journal, call(number))
going_on = journal.next_number()
journal.asks(going_on, "openai/m", AT.isoformat())
journal.asks(going_on, "openai/m", AT.isoformat())
journal.next_number()  # it still waits for its turn
print("ready", flush=True)
time.sleep(600)
"""
AT = datetime(2026, 1, 1, tzinfo=UTC)


def call(tokens: int) -> ModelCall:
    usage = CallUsage(input_tokens=tokens, output_tokens=1)
    return ModelCall(at=AT, model="openai/m", format="chat", status=200, usage=usage)


def made(journal: Journal, done: ModelCall) -> None:
    number = journal.next_number()
    journal.asks(number, done.model, AT.isoformat())
    journal.end(number, done)


def test_calls_are_read_as_they_were_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for number in range(3):
        made(journal, call(number))
    journal.end(None, call(9))
    assert read_calls(tmp_path) == [call(0), call(1), call(2), call(9)]  # also while the trial runs
    journal.close()
    assert read_calls(tmp_path) == [call(0), call(1), call(2), call(9)]
    assert [path.name for path in tmp_path.iterdir()] == [CALLS_FILE]


def test_a_trial_without_calls_leaves_no_file(tmp_path: Path) -> None:
    Journal(tmp_path).close()
    assert list(tmp_path.iterdir()) == [] and read_calls(tmp_path) == []


def test_a_killed_worker_loses_no_call(tmp_path: Path) -> None:
    """Five calls had ended, one was going on with its second request, and one was not sent yet."""
    root = str(Path(__file__).parents[3])
    command = [sys.executable, "-c", WRITES, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root, env={**os.environ, "PYTHONPATH": root}) as worker:
        assert worker.stdout is not None and worker.stdout.readline() == b"ready\n"
        worker.send_signal(signal.SIGKILL)
    calls = read_calls(tmp_path)
    assert calls[:5] == [call(number) for number in range(5)] and len(calls) == 6
    assert calls[5].error == "its worker was lost" and calls[5].model == "openai/m" and calls[5].tries == 2
    sums = reduce(CallSums.and_also, calls, CallSums())
    assert (sums.calls, sums.usage.input_tokens, sums.without_cost) == (6, 10, 6)


def test_what_the_provider_told_before_the_worker_was_lost_is_counted(tmp_path: Path) -> None:
    """The agent had its answer, and the line of the call was not written yet."""
    journal = Journal(tmp_path)
    for output in (None, 7):
        number = journal.next_number()
        journal.asks(number, "openai/m", AT.isoformat())
        journal.hears(number, CallUsage(input_tokens=40), CallCost())
        if output is not None:
            told = CallUsage(input_tokens=40, output_tokens=output)
            journal.hears(number, told, CallCost(dollars=0.25, by=CostBy.PROVIDER))
    early, late = read_calls(tmp_path)
    assert early.usage == CallUsage(input_tokens=40) and early.cost_usd is None
    assert late.usage == CallUsage(input_tokens=40, output_tokens=7)
    assert (late.cost_usd, late.cost_by, late.tries, late.error) == (0.25, CostBy.PROVIDER, 1, "its worker was lost")
    journal.end(2, call(40))
    assert [each.error for each in read_calls(tmp_path)] == [None, "its worker was lost"]


def test_a_torn_last_line_is_skipped(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    made(journal, call(1))
    with (tmp_path / CALLS_FILE).open("ab") as file:
        file.write(b'{"call":2,"at":"2026-')
    with (tmp_path / BEGUN).open("ab") as file:
        file.write(b'{"call":2,"mod')
    assert read_calls(tmp_path) == [call(1)]


def test_a_line_that_tells_nothing_of_lost_tries_is_read(tmp_path: Path) -> None:
    """Records of earlier versions have none."""
    line = {name: value for name, value in call(1).model_dump(mode="json").items() if name != "lost_tries"}
    (tmp_path / CALLS_FILE).write_text(json.dumps({"call": 1, **line}) + "\n")
    assert read_calls(tmp_path) == [call(1)] and call(1).lost_tries == 0


def test_what_is_no_record_is_skipped(tmp_path: Path) -> None:
    (tmp_path / CALLS_FILE).write_bytes(b"[]\n{}\nnull\n\xff\n" + b'{"a":' * 5000 + b"\n")
    assert read_calls(tmp_path) == []


def test_a_link_in_the_place_of_the_record_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("")
    (tmp_path / "try").mkdir()
    (tmp_path / "try" / CALLS_FILE).symlink_to(target)
    journal = Journal(tmp_path / "try")
    journal.end(None, call(1))
    journal.close()
    assert target.read_text() == ""
