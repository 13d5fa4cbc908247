"""When memory is too short for another trial."""

from __future__ import annotations

import pytest

from seatrial.domain.fleet.pressure import MemoryReading, shortage


def reading(available: int, stalled: float | None = None) -> MemoryReading:
    return MemoryReading(total_mb=1000, available_mb=available, stalled_percent=stalled)


@pytest.mark.parametrize(
    ("given", "stops"),
    [
        (reading(49), True),
        (reading(51), False),
        (reading(-20), True),
        (reading(200, stalled=30), True),
        (reading(200, stalled=5), False),
        (reading(800, stalled=60), False),  # a sandbox stalls at its own limit
    ],
)
def test_low_memory_and_stalls_stop_claims(given: MemoryReading, stops: bool) -> None:
    assert bool(shortage(given, 5.0)) is stops
    assert shortage(given, 0) == "", "the brake can be switched off"


def test_the_sentence_has_the_numbers() -> None:
    assert "30 of 1000 MB" in shortage(reading(30), 5.0)
    assert "40 % of the last ten seconds" in shortage(reading(200, stalled=40), 5.0)
