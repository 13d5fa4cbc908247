"""Brings a final state to another machine, when its worker is asked to leave before the result is recorded.

The state goes to the blobs as one file. Beside it lies its digest, sealed with the installation's secret key: a worker
takes up nothing that nobody of this installation wrote, because a disk is mounted by the kernel.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from seatrial.domain.trial import Trial
from seatrial.engine.trials.final_states import FinalStates
from seatrial.engine.trials.trial_files import trial_prefix
from seatrial.errors import NotFound, SeatrialError
from seatrial.ports.blobs import Blobs
from seatrial.ports.seal import Seal
from seatrial.removal import remove_tree

log = logging.getLogger(__name__)

_CHUNK = 1 << 20


@dataclass(frozen=True)
class HandOver:
    """Between the states of this machine and the blobs."""

    states: FinalStates
    blobs: Blobs
    seal: Seal
    pack: Callable[[Path, Path], None]
    unpack: Callable[[Path, Path, int], None]

    async def send(self, trial: Trial) -> bool:
        """Whether this try has a state, and it is in the blobs now. A fault costs a run of the agent, nothing else."""
        folder = await self.states.current(trial)
        if folder is None:
            return False
        archive = self.states.folder / f".{folder.name}.sent"
        try:
            await asyncio.to_thread(remove_tree, archive)
            await asyncio.to_thread(self.pack, folder, archive)
            digest = await asyncio.to_thread(_digest, archive)
            await self.blobs.take_file(f"{_prefix(trial.id)}/state", archive)
            told = json.dumps({"trial": trial.id, "try": int(folder.name.partition("-")[2]), "sha256": digest})
            await self.blobs.put_bytes(f"{_prefix(trial.id)}/seal", self.seal.close(told).encode())
        except (OSError, ValueError, SeatrialError):
            log.exception("The final state of trial %d could not be handed over", trial.id)
            return False
        finally:
            await asyncio.to_thread(remove_tree, archive)
        return True

    async def fetch(self, trial: Trial) -> Path | None:
        """The state that another machine left for this trial, if there is one that can be trusted."""
        if trial.try_number < 2:
            return None
        archive = self.states.folder / f".{trial.id}-{trial.try_number}.fetched"
        draft = self.states.folder / f".{trial.id}-{trial.try_number}.unpacked"
        try:
            sealed = await self.blobs.read(f"{_prefix(trial.id)}/seal")
            told = json.loads(self.seal.open(sealed.decode()))
            if told["trial"] != trial.id or told["try"] >= trial.try_number:
                return None
            return await self._unpacked(trial, told, archive, draft)
        except NotFound:
            return None
        except (OSError, ValueError, KeyError, TypeError, SeatrialError) as fault:
            log.warning("The final state of trial %d cannot be taken up, so its agent runs again: %s", trial.id, fault)
            return None
        finally:
            for place in (archive, draft):
                await asyncio.to_thread(remove_tree, place)

    async def _unpacked(self, trial: Trial, told: dict[str, object], archive: Path, draft: Path) -> Path:
        self.states.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for place in (archive, draft):
            await asyncio.to_thread(remove_tree, place)
        with archive.open("xb") as file:
            async for piece in self.blobs.stream(f"{_prefix(trial.id)}/state"):
                file.write(piece)
        if await asyncio.to_thread(_digest, archive) != told["sha256"]:
            raise ValueError("it is not what was sent")
        await asyncio.to_thread(self.unpack, archive, draft, self.states.limit_bytes)
        folder = self.states.folder / f"{trial.id}-{told['try']}"
        await asyncio.to_thread(remove_tree, folder)
        return draft.rename(folder)

    async def forget(self, trial: Trial) -> None:
        """After the result was recorded. Only a trial with several tries can have been handed over."""
        if trial.try_number > 1:
            await self.blobs.delete(_prefix(trial.id))


def _prefix(trial_id: int) -> str:
    """Among the files of the trial, so that whatever removes those removes it, too."""
    return f"{trial_prefix(trial_id)}/final"


def _digest(archive: Path) -> str:
    with archive.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
