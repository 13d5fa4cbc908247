"""Where the word about a dead worker comes from: its supervisor, the kernel, or the heartbeats of its machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from seatrial.domain.fleet.worker_death import Death, Exit
from seatrial.engine.trials.autopsy import Autopsy, Witnesses
from seatrial.ports.store import Heartbeat
from seatrial.system.processes import boot_id
from seatrial.testing.memory_store.installation import MemoryWorkers

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
HERE = f"here:7:70-1-{boot_id()}"
THERE = "there:7:70-1-abcdefabcdef"
SECOND = timedelta(seconds=1)


async def died(
    worker: str, witnesses: Witnesses, *others: tuple[str, int], patient: bool = True, **told: Any
) -> Death | None:
    """How the worker died that was heard 30 s ago. ``others``: workers, and how many seconds ago they were heard."""
    workers = MemoryWorkers()
    for name, ago in ((worker, 30), *others):
        about = Heartbeat(worker=name, host="h", pid=7, capacity=1, started_at=NOW, **(told if name == worker else {}))
        await workers.beat(about, NOW - ago * SECOND)
    return await Autopsy(workers, lambda: NOW, witnesses).of(worker, patient=patient)


async def test_the_supervisors_note_is_waited_for() -> None:
    silent, told = Witnesses(), Witnesses(exit_of=lambda name: Exit(status=-9))
    assert await died(HERE, silent, supervisor="s") is None
    assert await died(HERE, told, supervisor="s") is Death.KILLED
    assert await died(HERE, silent, supervisor="s", patient=False) is Death.UNKNOWN, "after the lease nobody waits"
    assert await died(HERE, silent) is Death.UNKNOWN, "it had no supervisor"


async def test_a_supervisor_that_died_too_was_killed_with_it() -> None:
    gone = Witnesses(is_dead=lambda name: name == "s")
    assert await died(HERE, gone, supervisor="s") is Death.WITH_SUPERVISOR
    assert await died(HERE, gone, supervisor="lives", patient=False) is Death.UNKNOWN


async def test_the_kernels_count_tells_a_kill_for_memory() -> None:
    counted = Witnesses(memory_kills=lambda: ("/c", 3))
    assert await died(HERE, counted, cgroup="/c", memory_kills=2) is Death.OUT_OF_MEMORY
    assert await died(HERE, counted, cgroup="/c", memory_kills=3) is Death.UNKNOWN
    assert await died(HERE, counted, cgroup="/another", memory_kills=2) is Death.UNKNOWN
    assert await died(THERE, counted, cgroup="/c", memory_kills=2) is Death.MACHINE_GONE, "not our kernel"


async def test_a_machine_of_which_nobody_is_heard_is_gone() -> None:
    neighbour, elsewhere = THERE.replace(":7:", ":8:"), "other:9:70-1-0123456789ab"
    assert await died(THERE, Witnesses()) is Death.MACHINE_GONE
    assert await died(THERE, Witnesses(), (elsewhere, 1)) is Death.MACHINE_GONE
    assert await died(THERE, Witnesses(), (neighbour, 1)) is Death.UNKNOWN, "its machine is there"
    assert await died(THERE, Witnesses(), (neighbour, 27)) is Death.MACHINE_GONE, "they fell silent together"


async def test_a_worker_that_never_beat_or_has_another_kind_of_name_is_unknown() -> None:
    autopsy = Autopsy(MemoryWorkers(), lambda: NOW)
    assert await autopsy.of(HERE, patient=True) is Death.UNKNOWN
    assert await died("w", Witnesses()) is Death.UNKNOWN
