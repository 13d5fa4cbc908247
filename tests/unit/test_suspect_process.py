"""A process for suspected trials beside a worker: one at a time, on some of its slots, and its end is noted."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from seatrial.domain.fleet.isolation import Suspects
from seatrial.suspect_process import SuspectProcess, suspects_command
from seatrial.system.processes import WorkerName
from seatrial.worker_exits import ExitNotes, ExitWatch
from tests.waiting import eventually

ONE = Suspects(group="1.1+3", size=4)
OTHER = Suspects(group="5.1", size=1)
ENDS = "pass"
WAITS = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: exit(0)); print(flush=True); time.sleep(600)"
FALLS = "import os, time\nwhile not os.path.exists({told!r}): time.sleep(0.01)\nos.abort()"


class Place:
    def __init__(self, folder: Path, script: str) -> None:
        self.notes = ExitNotes.beside(folder / "work")
        self.started: list[tuple[str, int]] = []
        self.told: list[Sequence[str]] = []
        self._script = script
        self.process = SuspectProcess(ExitWatch(self.notes), {}, self._command)

    def _command(self, suspects: Suspects, slots: int, sandboxes: Sequence[str]) -> Sequence[str]:
        self.started.append((suspects.group, slots))
        self.told.append(sandboxes)
        return [sys.executable, "-c", self._script]


async def test_it_takes_half_of_the_free_slots_and_gives_them_back(tmp_path: Path) -> None:
    place = Place(tmp_path, WAITS)
    await place.process.look([ONE], free=6)
    assert (place.started, place.process.slots) == ([("1.1+3", 3)], 3)
    await place.process.look([OTHER], free=6)
    assert len(place.started) == 1, "one at a time"
    place.process.leave()
    await place.process.gone()
    assert place.process.slots == 0


async def test_it_is_told_which_sandboxes_work_here(tmp_path: Path) -> None:
    """It claims before it could have tried them, and leaves when it finds no trial that it can run."""
    place = Place(tmp_path, ENDS)
    place.process.sandboxes = ("oci", "docker")
    await place.process.look([ONE], free=6)
    await place.process.gone()
    assert place.told == [("oci", "docker")]
    assert suspects_command(ONE, 3, place.told[0])[-4:] == ["--works-with", "oci", "--works-with", "docker"]


async def test_without_a_free_slot_the_next_one_is_kept_for_it(tmp_path: Path) -> None:
    place = Place(tmp_path, ENDS)
    await place.process.look([ONE], free=0)
    assert (place.started, place.process.slots) == ([], 1)
    await place.process.look([], free=0)
    assert place.process.slots == 0, "the group found another process"
    await place.process.look([ONE], free=1)
    assert place.started == [("1.1+3", 1)]
    await place.process.gone()


async def test_a_group_of_which_nothing_could_be_claimed_is_left_to_others(tmp_path: Path) -> None:
    place = Place(tmp_path, ENDS)
    for _ in range(2):
        await place.process.look([ONE], free=4)
        await place.process.gone()
    assert len(place.started) == 1
    await place.process.look([ONE, OTHER], free=4)
    assert place.started[1:] == [(OTHER.group, 1)]
    await place.process.gone()


async def test_the_end_of_the_process_is_noted(tmp_path: Path) -> None:
    told = tmp_path / "fall"
    place = Place(tmp_path, FALLS.format(told=str(told)))
    await place.process.look([ONE], free=4)
    told.touch()  # a process that ended before somebody could look at it has no name, and no trial either
    await place.process.gone()
    await eventually(lambda: place.notes.folder.is_dir(), "a note")
    [note] = place.notes.folder.iterdir()
    assert '"status":-6' in note.read_text()
    await place.process.look([ONE], free=4)
    assert len(place.started) == 2, "a process that fell does not make its group wait"
    await place.process.gone()


class Unwritable(ExitWatch):
    def note(self, worker: WorkerName | None, status: int) -> None:
        raise ValueError("the kernel's counter is no number")


async def test_slots_are_free_again_although_the_end_could_not_be_noted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place(tmp_path, WAITS)
    process = SuspectProcess(Unwritable(place.notes), {}, place._command)
    await process.look([ONE], free=6)
    assert process.slots == 3
    process.leave()
    await process.gone()
    assert process.slots == 0
    assert any("could not be noted" in said for said in caplog.messages), "at once, and not when somebody cleans up"
