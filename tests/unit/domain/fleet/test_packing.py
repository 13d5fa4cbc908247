"""The room of a worker: sizes, what fits, and the largest machine as people write it."""

from __future__ import annotations

import pytest

from seatrial.domain.fleet.needs import Needs
from seatrial.domain.fleet.packing import Offer, Packing, Size

ROOM = Packing(size=Size(memory_mb=21600, cpus=8), usual=Size(memory_mb=2048, cpus=1))


@pytest.mark.parametrize("text", ["16cpu,64gb", "64gb,16cpu", "16 CPUs, 64 GB", "16cpus 64gb", "16.0cpu,64.0gb"])
def test_a_machine_as_people_write_it(text: str) -> None:
    assert Size.parse(text) == Size(memory_mb=65536, cpus=16)


@pytest.mark.parametrize("text", ["", "large", "16cpu", "64gb", "cpu,gb", "16,64", "1.2.3cpu,4gb"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="16cpu,64gb"):
        Size.parse(text)


def test_a_trial_that_declares_nothing_counts_the_default_and_fits_everywhere() -> None:
    assert ROOM.demand(Needs()) == Size(memory_mb=2048, cpus=1) and ROOM.usual_count == 8
    tiny = ROOM.model_copy(update={"size": Size(memory_mb=900, cpus=0.5)})
    assert tiny.usual_count == 1 and tiny.size.holds(tiny.demand(Needs()))


def test_a_trial_that_declares_too_much_never_fits() -> None:
    offer = Offer(packing=ROOM, free=ROOM.size)
    assert offer.may_ever_run(Needs(memory_mb=16384)) and not offer.may_ever_run(Needs(memory_mb=32768))
    assert Offer().may_ever_run(Needs(memory_mb=32768)), "a worker that counts takes every size"


def test_what_was_taken_is_gone() -> None:
    offer = Offer(packing=ROOM, free=ROOM.size)
    for _ in range(2):
        assert offer.fits(Needs(memory_mb=8192))
        offer = offer.after(Needs(memory_mb=8192))
    assert not offer.fits(Needs(memory_mb=8192)) and offer.fits(Needs(memory_mb=4096))
