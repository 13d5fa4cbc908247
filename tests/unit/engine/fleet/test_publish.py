"""One of several processes publishes; another one takes over."""

from __future__ import annotations

from datetime import timedelta

import pytest

from seatrial.domain.fleet.work_units import MachineSize
from seatrial.engine.fleet.publish import Publisher
from seatrial.engine.fleet.signals import FleetSignals, MachineUnit
from seatrial.errors import ServiceUnavailable
from seatrial.ports.store import WorkerRow
from seatrial.testing.memory_signals import MemorySignals
from seatrial.testing.memory_store import MemoryStore
from tests.contracts.store.samples import NOON, submit


class Apis:
    """Processes of the API on one store, each with its own way to the sink."""

    def __init__(self, count: int) -> None:
        self.now = NOON
        self.store = MemoryStore()
        self.sinks = [MemorySignals() for _ in range(count)]
        unit = MachineUnit(machine=MachineSize(memory_mb=20_480, cpus=4), default=MachineSize(memory_mb=2048, cpus=1))

        async def nobody() -> list[WorkerRow]:
            return []

        def publisher(number: int, sink: MemorySignals) -> Publisher:
            signals = FleetSignals(self.store, lambda: self.now, unit, nobody)
            return Publisher(signals, sink, self.store.duties, lambda: self.now, f"api-{number}", every_sec=60)

        self.publishers = [publisher(number, sink) for number, sink in enumerate(self.sinks)]

    async def minute(self) -> list[bool]:
        self.now += timedelta(minutes=1)
        return [await publisher.step() for publisher in self.publishers]


async def test_one_process_publishes_at_a_time() -> None:
    apis = Apis(3)
    await submit(apis.store, trials=9)
    assert [await apis.minute() for _ in range(4)] == [[True, False, False]] * 4
    assert [len(sink.published) for sink in apis.sinks] == [4, 0, 0]
    assert apis.sinks[0].published[0] == {
        "seatrial_work_units": 1.0,
        "seatrial_desired_workers": 1.0,
        "seatrial_queue_oldest_seconds": 60.0,
        "seatrial_workers": 0.0,
    }


async def test_another_one_takes_over_from_a_process_that_is_gone() -> None:
    apis = Apis(2)
    await apis.minute()
    del apis.publishers[0]
    assert [await apis.minute() for _ in range(3)] == [[False], [False], [True]]


async def test_another_one_takes_over_from_a_process_that_cannot_publish() -> None:
    apis = Apis(2)
    apis.sinks[0].is_away = True
    with pytest.raises(ServiceUnavailable):
        await apis.publishers[0].step()
    assert await apis.publishers[1].step()
    assert len(apis.sinks[1].published) == 1
