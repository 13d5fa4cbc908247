"""Folders of dead processes go, unless recovery still has to read there what a lost try used."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.engine.trials.retention import Running, remove_dead_work_dirs
from seatrial.system.processes import WorkerName

GONE = WorkerName("here", WorkerName.mine().process.model_copy(update={"pid": 2**22 - 1})).folder


async def one_runs() -> set[tuple[int, int]]:
    return {(7, 2)}


@pytest.mark.parametrize(
    ("holds", "running", "stays"),
    [("7-2", one_runs, True), ("7-1", one_runs, False), ("7-1", None, True), ("rollouts", None, False)],
)
async def test_a_dead_process_folder_stays_while_a_try_in_it_may_be_recovered(
    tmp_path: Path, holds: str, running: Running | None, stays: bool
) -> None:
    (tmp_path / GONE / holds).mkdir(parents=True)
    await remove_dead_work_dirs(tmp_path, running=running)
    assert (tmp_path / GONE).exists() is stays
