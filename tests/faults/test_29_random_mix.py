"""FAULTS 29, the bounded part: each fault of the mix once, with a fixed seed. ``make faults`` goes on for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.mix import run_mix


@pytest.mark.timeout(420)
@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_everything_comes_right_in_the_end(tmp_path: Path, store: str) -> None:
    mix = await run_mix(store, seconds=0, seed=29, place=tmp_path)
    assert mix.jobs and len(mix.done) >= 7, "something was submitted, and everything went wrong once"
