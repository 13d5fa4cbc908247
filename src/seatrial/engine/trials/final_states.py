"""Final states: what an agent did, kept from its end until the result is recorded.

If a worker is lost while it grades, only the grading is repeated, not the agent's run. The runner writes the content
(see ``ports.runner.Order.save_state_to``); here are the places, their lookup and their removal. The content comes from
a sandbox and is untrusted: it is only removed, or handed to the runner.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from seatrial.domain.trial import Trial
from seatrial.system.removal import remove_tree

_STATE = re.compile(r"(\d+)-(\d+)")
_MEASURED_SEC = 5.0
"""How often the disk that they take is measured."""
_DRAFT_SEC = 6 * 3600.0
"""An unfinished draft that is older belongs to a dead worker."""
_KEPT_SEC = 7 * 86400.0
"""A state that is older is removed, and its trial starts from the beginning."""


@dataclass
class FinalStates:
    """The states of one machine, in one folder. Workers share it."""

    folder: Path
    limit_bytes: int
    """About how much of the disk they may take; 0 keeps none."""
    _measured_at: float = float("-inf")
    _taken: int = 0

    @classmethod
    def beside(cls, work_dir: Path, limit_mb: int) -> FinalStates:
        return cls(work_dir.parent / "final", limit_mb << 20)

    async def place(self, trial: Trial) -> Path | None:
        """Where the state of this try goes. ``None`` if there is no room for another one."""
        if self.limit_bytes and time.monotonic() - self._measured_at > _MEASURED_SEC:
            self._measured_at = time.monotonic()
            self._taken = await asyncio.to_thread(lambda: sum(map(_taken, self._all())))
        if self._taken >= self.limit_bytes:
            return None
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.folder / f"{trial.id}-{trial.try_number}"

    async def find(self, trial: Trial) -> Path | None:
        """The newest state of an earlier try of this trial."""
        if trial.try_number < 2:
            return None
        return await asyncio.to_thread(self._newest, trial, trial.try_number - 1)

    async def current(self, trial: Trial) -> Path | None:
        """The state that this try grades: its own, or that of an earlier one."""
        return await asyncio.to_thread(self._newest, trial, trial.try_number)

    async def has(self, trial: Trial) -> bool:
        """Whether the state of this very try is kept."""
        return await asyncio.to_thread((self.folder / f"{trial.id}-{trial.try_number}").is_dir)

    async def forget(self, trial_id: int) -> None:
        """After a result was recorded: nothing of it is needed any more."""
        for state in self._states():
            if _numbers(state)[0] == trial_id:
                await asyncio.to_thread(remove_tree, state)

    def trials(self) -> set[int]:
        """The trials of which there are states."""
        return {_numbers(state)[0] for state in self._states()}

    async def sweep(self, wanted: Collection[int], now: float) -> int:
        """Removes the states of all other trials, and what is too old by the clock of this machine's files. Returns how
        many."""
        old = [state for state in self._states() if _numbers(state)[0] not in wanted or _age(state, now) > _KEPT_SEC]
        drafts = [place for place in self._all() if place.name.startswith(".") and _age(place, now) > _DRAFT_SEC]
        for place in (*old, *drafts):
            await asyncio.to_thread(remove_tree, place)
        return len(old) + len(drafts)

    def _newest(self, trial: Trial, up_to: int) -> Path | None:
        numbered = [(_numbers(state), state) for state in self._states()]
        mine = [(number, state) for (one, number), state in numbered if one == trial.id and number <= up_to]
        return max(mine)[1] if mine else None

    def _states(self) -> list[Path]:
        return [place for place in self._all() if _STATE.fullmatch(place.name)]

    def _all(self) -> list[Path]:
        return list(self.folder.iterdir()) if self.folder.is_dir() else []


def _numbers(state: Path) -> tuple[int, int]:
    found = _STATE.fullmatch(state.name)
    assert found is not None
    return int(found[1]), int(found[2])


def _age(place: Path, now: float) -> float:
    try:
        return now - place.lstat().st_mtime
    except OSError:
        return 0.0


def _taken(state: Path) -> int:
    """Bytes of the disk that its own files take; the tree of files below is bounded by what may be kept of a try."""
    taken = 0
    with contextlib.suppress(OSError), os.scandir(state) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                taken += entry.stat(follow_symlinks=False).st_blocks * 512
    return taken
