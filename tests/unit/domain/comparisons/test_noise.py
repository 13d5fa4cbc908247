"""Infrastructure noise: sides that were held up unequally say so, equal ones do not."""

from __future__ import annotations

import pytest

from seatrial.domain.comparisons.noise import LEAST_TRIALS, SideOfNoise, Strained, noise_between, noise_within
from seatrial.domain.suffered import Suffered


def side(label: str, suffered: Suffered, trials: int = 10, model: str | None = "m") -> SideOfNoise:
    return SideOfNoise(label, model, [Strained(100.0, suffered)] * trials)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (Suffered(throttled_sec=20), Suffered(throttled_sec=2), "stopped a for 20% of its time and b for 2%"),
        (
            Suffered(pace_wait_sec=0),
            Suffered(pace_wait_sec=50),
            "turn at the provider for 0% of its time and b for 50%",
        ),
        (Suffered(model_wait_sec=10), Suffered(model_wait_sec=40), "waited for the same model for 10%"),
        (Suffered(memory_pressure=9), Suffered(memory_pressure=0), "100% of the trials of a and 0% of those of b"),
    ],
)
def test_sides_that_were_held_up_unequally_say_so(a: Suffered, b: Suffered, words: str) -> None:
    [sentence] = noise_between(side("a", a), side("b", b))
    assert sentence.startswith("Infrastructure noise: ") and words in sentence


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Suffered(throttled_sec=20), Suffered(throttled_sec=20)),
        (Suffered(throttled_sec=20), Suffered(throttled_sec=12)),  # less than twice
        (Suffered(throttled_sec=4), Suffered(throttled_sec=0)),  # less than five points
        (Suffered(throttled_sec=50), Suffered()),  # not measured on one side
        (Suffered(memory_pressure=1), Suffered(memory_pressure=900)),  # all trials of both reached it
    ],
)
def test_a_small_or_unknown_difference_is_no_noise(a: Suffered, b: Suffered) -> None:
    assert noise_between(side("a", a), side("b", b)) == ()


def test_another_model_may_be_slower() -> None:
    a, b = Suffered(model_wait_sec=10), Suffered(model_wait_sec=40)
    assert noise_between(side("a", a, model="m"), side("b", b, model="n")) == ()


def test_a_few_trials_say_nothing() -> None:
    a, b = Suffered(throttled_sec=50), Suffered(throttled_sec=0)
    assert noise_between(side("a", a, LEAST_TRIALS), side("b", b, LEAST_TRIALS))
    assert noise_between(side("a", a, LEAST_TRIALS - 1), side("b", b)) == ()


def test_every_pair_of_a_job_is_looked_at() -> None:
    sides = [side(name, Suffered(throttled_sec=value)) for name, value in (("a", 1.0), ("b", 2.0), ("c", 60.0))]
    found = noise_within(sides)
    assert len(found) == 2 and all("c for 60%" in sentence for sentence in found)
