"""FAULTS 29, the bounded part: each fault of the mix once, with a fixed seed. ``make faults`` goes on for longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.configurations import BOTH
from tests.faults.mix import run_mix


@pytest.mark.timeout(420)
@pytest.mark.parametrize("kind", BOTH)
async def test_everything_comes_right_in_the_end(tmp_path: Path, kind: str) -> None:
    mix = await run_mix(kind, seconds=0, seed=29, place=tmp_path)
    assert mix.jobs and len(mix.done) >= 7, "something was submitted, and everything went wrong once"
