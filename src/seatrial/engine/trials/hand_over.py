"""Brings a final state to another machine, when its worker is asked to leave before the result is recorded.

The state goes to the blobs as one encrypted file: it may contain keys that the agent was given. Beside it lie that
file's key and digest, sealed with the installation's secret key. A worker takes up only what this installation wrote,
because a disk is mounted by the kernel.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from seatrial.domain.trial import Trial
from seatrial.engine.trials.final_states import FinalStates
from seatrial.engine.trials.trial_files import trial_prefix
from seatrial.errors import NotFound, SeatrialError
from seatrial.ports.blobs import Blobs
from seatrial.ports.seal import Seal
from seatrial.system.removal import remove_tree

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Way:
    """What is on disk while a state is fetched."""

    locked: Path
    archive: Path
    draft: Path


class Packing(Protocol):
    """How a state becomes one file; see ``adapters.final_state_archive``. Blocking."""

    def pack(self, folder: Path, archive: Path) -> None: ...

    def unpack(self, archive: Path, folder: Path, most_bytes: int) -> None: ...

    def scramble(self, source: Path, target: Path, key: bytes) -> None:
        """Encrypts a file, or decrypts it again."""


@dataclass(frozen=True)
class HandOver:
    """Between the states of this machine and the blobs."""

    states: FinalStates
    blobs: Blobs
    seal: Seal
    packing: Packing

    async def send(self, trial: Trial) -> bool:
        """Whether this try has a state, and it is in the blobs now. A fault costs a run of the agent, nothing else."""
        folder = await self.states.current(trial)
        if folder is None:
            return False
        archive, locked = (self.states.folder / f".{folder.name}.{kind}" for kind in ("packed", "sent"))
        key = os.urandom(32)
        try:
            await self._discard(archive, locked)
            await asyncio.to_thread(self.packing.pack, folder, archive)
            await asyncio.to_thread(self.packing.scramble, archive, locked, key)
            digest = await asyncio.to_thread(_digest, locked)
            await self.blobs.take_file(f"{_prefix(trial.id)}/state", locked)
            number = int(folder.name.partition("-")[2])
            told = json.dumps({"trial": trial.id, "try": number, "sha256": digest, "key": key.hex()})
            await self.blobs.put_bytes(f"{_prefix(trial.id)}/seal", self.seal.close(told).encode())
        except (OSError, ValueError, SeatrialError):
            log.exception("The final state of trial %d could not be handed over", trial.id)
            return False
        finally:
            await self._discard(archive, locked)
        return True

    async def fetch(self, trial: Trial) -> Path | None:
        """The state that another machine left for this trial, if there is one that can be trusted."""
        if trial.try_number < 2:
            return None
        here = self.states.folder / f".{trial.id}-{trial.try_number}"
        way = _Way(*(here.with_name(f"{here.name}.{kind}") for kind in ("fetched", "opened", "unpacked")))
        try:
            sealed = await self.blobs.read(f"{_prefix(trial.id)}/seal")
            told = json.loads(self.seal.open(sealed.decode()))
            if told["trial"] != trial.id or told["try"] >= trial.try_number:
                return None
            await self._discard(way.locked, way.archive, way.draft)
            return await self._unpacked(trial, told, way)
        except NotFound:
            return None
        except (OSError, ValueError, KeyError, TypeError, SeatrialError) as fault:
            log.warning("The final state of trial %d cannot be taken up, so its agent runs again: %s", trial.id, fault)
            return None
        finally:
            await self._discard(way.locked, way.archive, way.draft)

    async def _unpacked(self, trial: Trial, told: dict[str, Any], way: _Way) -> Path:
        self.states.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with way.locked.open("xb") as file:
            async for piece in self.blobs.stream(f"{_prefix(trial.id)}/state"):
                file.write(piece)
        if await asyncio.to_thread(_digest, way.locked) != told["sha256"]:
            raise ValueError("it is not what was sent")
        await asyncio.to_thread(self.packing.scramble, way.locked, way.archive, bytes.fromhex(told["key"]))
        await asyncio.to_thread(self.packing.unpack, way.archive, way.draft, self.states.limit_bytes)
        folder = self.states.folder / f"{trial.id}-{told['try']}"
        await self._discard(folder)
        return way.draft.rename(folder)

    async def _discard(self, *places: Path) -> None:
        for place in places:
            await asyncio.to_thread(remove_tree, place)

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
