"""Finds the full record of a trial's model calls, and brings it to the machine of a worker that replays it."""

from __future__ import annotations

from pathlib import Path

from seatrial.domain.job import JobSpec
from seatrial.domain.model_calls.replay import RECORD_FILE, Replay
from seatrial.domain.result import StoredFile
from seatrial.engine.trials.save_files import kept_name
from seatrial.engine.trials.trial_files import try_prefix
from seatrial.errors import InvalidInput, NotFound
from seatrial.ports.blobs import Blobs
from seatrial.ports.store import TrialStore

_HOW = "Run the trial again with --record full, and replay that one."


async def check_replay(trials: TrialStore, spec: JobSpec) -> None:
    """Raises ``InvalidInput`` if a job replays a trial that has no record, or has no agent that calls a model."""
    if spec.replay is None:
        return
    for agent in spec.agents:
        if agent.model is None:
            raise InvalidInput(
                f"Agent {agent.name} has no model, so there is nothing to replay.",
                field="replay",
                fix="Name the agent and the model of the replayed trial.",
            )
    await _find(trials, spec.replay)


async def fetch_record(trials: TrialStore, blobs: Blobs, replay: Replay, target: Path) -> None:
    """Writes the record to ``target``. Raises ``InvalidInput`` if there is none any more."""
    key = await _find(trials, replay)
    try:
        with target.open("xb") as file:
            async for piece in blobs.stream(key):
                file.write(piece)
    except NotFound:
        raise _none(replay.trial, "its files were removed") from None


async def _find(trials: TrialStore, replay: Replay) -> str:
    """The key of the record of the trial's last try that has one."""
    try:
        tries = await trials.tries(replay.trial)
    except NotFound as error:
        raise InvalidInput(error.message, field="replay") from error
    for a_try in reversed(tries):
        for file in a_try.result.files if a_try.result is not None else ():
            if file.path == RECORD_FILE:
                return _key(replay.trial, a_try.number, file)
    if not any(a_try.result is not None for a_try in tries):
        raise InvalidInput(
            f"Trial {replay.trial} has not ended yet.", field="replay", fix="Replay it when it has a result."
        )
    raise _none(replay.trial, "the bodies of its model calls were not kept")


def _key(trial_id: int, number: int, file: StoredFile) -> str:
    return f"{try_prefix(trial_id, number)}/{kept_name(file)}"


def _none(trial_id: int, why: str) -> InvalidInput:
    return InvalidInput(f"Trial {trial_id} cannot be replayed: {why}.", field="replay", fix=_HOW)
