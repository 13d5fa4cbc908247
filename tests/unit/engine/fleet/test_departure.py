"""What happens to a machine after its worker has left."""

from __future__ import annotations

import pytest

from seatrial.engine.fleet.departure import depart
from seatrial.errors import ServiceUnavailable
from seatrial.testing.fake_platform import FakePlatform


@pytest.mark.parametrize(
    ("idle", "noticed", "calls"),
    [(True, False, ["end"]), (False, True, ["drained"]), (True, True, ["end"]), (False, False, [])],
)
async def test_the_platform_hears_why_the_worker_left(idle: bool, noticed: bool, calls: list[str]) -> None:
    platform = FakePlatform()
    await depart(platform.add("m"), idle=idle, noticed=noticed)
    assert [what for _, what in platform.calls] == calls


async def test_it_insists_and_gives_up_with_an_error() -> None:
    platform, pauses = FakePlatform(), list[float]()
    machine = platform.add("m")
    platform.is_away = True

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        platform.is_away = len(pauses) < 3

    await depart(machine, idle=True, noticed=False, sleep=sleep)
    assert (pauses, platform.ended) == ([1, 2, 4], ["m"])

    async def sleep_in_vain(seconds: float) -> None:
        pauses.append(seconds)

    platform.is_away = True
    with pytest.raises(ServiceUnavailable):
        await depart(machine, idle=True, noticed=False, sleep=sleep_in_vain)
