"""What an agent is told of its limits: exact in the file, in words in the instruction, nothing where there is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from seatrial.domain.model_calls.budget import WITHOUT_CAP, Cap
from seatrial.domain.model_calls.limits_left import LimitsLeft, iso

NOON = datetime(2026, 11, 16, 12, 0, 0, 900_000, UTC)
FILE = "/opt/seatrial/limits/limits.json"


def test_the_file_has_every_limit_and_null_for_what_has_none() -> None:
    capped = LimitsLeft.of(NOON, 90.5, Cap(dollars=0.25, calls=7).limits)
    assert capped.document() == {
        "at": "2026-11-16T12:00:00Z",
        "deadline": "2026-11-16T12:01:31Z",
        "seconds_left": 90,
        "usd_left": 0.25,
        "tokens_left": None,
        "calls_left": 7,
    }
    free = LimitsLeft.of(NOON, None, WITHOUT_CAP).document()
    assert {name for name, value in free.items() if value is not None} == {"at"}


def test_a_deadline_is_never_told_too_late_and_time_is_never_negative() -> None:
    assert LimitsLeft.of(NOON, 0.05).deadline == "2026-11-16T12:00:00Z"
    assert LimitsLeft.of(NOON, -5).document()["seconds_left"] == 0
    assert iso(NOON.astimezone(timezone(timedelta(hours=5)))) == "2026-11-16T12:00:00Z"


def test_the_instruction_says_it_in_words() -> None:
    everything = LimitsLeft.of(NOON, 900, Cap(dollars=0.5, tokens=200_000, calls=30).limits)
    assert everything.sentences(FILE) == (
        "You have 15 minutes for this task, until 2026-11-16T12:15:00Z (UTC). You may spend at most $0.5, 200,000 "
        f"tokens and 30 calls on your model. The file {FILE} says what is left."
    )
    assert LimitsLeft.of(NOON, 90).sentences("") == (
        "You have 90 seconds for this task, until 2026-11-16T12:01:30Z (UTC)."
    )
    assert (
        LimitsLeft.of(NOON, None, Cap(calls=3).limits).sentences("") == "You may spend at most 3 calls on your model."
    )
    assert LimitsLeft.of(NOON, None).sentences(FILE) == ""
