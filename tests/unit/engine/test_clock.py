"""One clock for all machines: the store's. A machine whose own clock is far off is told apart."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import seatrial
from seatrial.engine.clock import StoreClock
from seatrial.errors import SetupProblem

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Machine:
    """A clock that is ahead of the store's, and an uptime."""

    def __init__(self, ahead_sec: float) -> None:
        self.uptime, self.ahead_sec = 100.0, ahead_sec
        self.clock = StoreClock(own=self.own, elapsed=lambda: self.uptime)

    def true(self) -> datetime:
        return NOON + timedelta(seconds=self.uptime)

    def own(self) -> datetime:
        return self.true() + timedelta(seconds=self.ahead_sec)

    async def ask(self) -> datetime | None:
        return self.true()


@pytest.mark.parametrize("ahead_sec", [0.0, 3600.0, -3600.0])
async def test_the_time_is_the_stores_whatever_the_machine_says(ahead_sec: float) -> None:
    machine = Machine(ahead_sec)
    await machine.clock.look(machine.ask)
    machine.uptime += 7
    machine.ahead_sec -= 5000  # somebody sets the machine's clock
    assert machine.clock() == machine.true()


@pytest.mark.parametrize(("ahead_sec", "told"), [(42.0, "42 s ahead of"), (-42.0, "42 s behind")])
async def test_a_clock_that_is_far_off_is_told(ahead_sec: float, told: str) -> None:
    machine = Machine(ahead_sec)
    await machine.clock.look(machine.ask)
    with pytest.raises(SetupProblem, match=told):
        machine.clock.require_near()
    machine.ahead_sec = 0.0
    await machine.clock.look(machine.ask)
    machine.clock.require_near()


@pytest.mark.parametrize("ahead_sec", [0.0, 1.0, -1.0])
async def test_a_clock_that_is_nearly_right_is_no_trouble(ahead_sec: float) -> None:
    machine = Machine(ahead_sec)
    await machine.clock.look(machine.ask)
    machine.clock.require_near()


async def test_a_store_without_a_clock_leaves_it_to_the_machine() -> None:
    machine = Machine(3600.0)

    async def none() -> datetime | None:
        return None

    await machine.clock.look(none)
    machine.clock.require_near()
    assert machine.clock() == machine.own()


def test_nobody_who_judges_leases_reads_the_clock_of_the_machine() -> None:
    """Leases, heartbeats, sweeps and leftovers get the clock passed in. Ages of files are the machine's own affair."""
    package = Path(seatrial.__file__).parent
    rooms = [package / name for name in ("domain", "ports", "engine", "adapters/store_sql", "api", "worker.py")]
    files = [file for room in rooms for file in ([room] if room.is_file() else room.rglob("*.py"))]
    reads = re.compile(r"datetime\.(utc)?now\(|time\.time\(|func\.now\(|current_timestamp", re.IGNORECASE)
    found = {str(file.relative_to(package)) for file in files if reads.search(file.read_text())}
    assert found == {"engine/clock.py", "engine/budgets/ledger.py"}, "the ledger looks at the age of its files"
