"""The event log and live output in memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from seatrial.domain.event import Event, NewEvent
from seatrial.domain.output import RING_PIECES, NewOutput, Output
from seatrial.domain.trial import TrialState
from seatrial.errors import NotFound
from seatrial.testing.memory_store.records import MemoryRecords


class MemoryEvents:
    def __init__(self, records: MemoryRecords) -> None:
        self._records = records

    async def append(self, events: Sequence[NewEvent], now: datetime) -> None:
        if any(event.job_id not in self._records.jobs for event in events):
            raise NotFound("The event names a job that does not exist.")
        for event in events:
            self._records.append_event(event, now)

    async def read(
        self, after: int = 0, job_id: int | None = None, trial_id: int | None = None, limit: int = 500
    ) -> list[Event]:
        wanted = (
            event
            for event in self._records.events
            if event.seq > after and job_id in (None, event.job_id) and trial_id in (None, event.trial_id)
        )
        return list(wanted)[:limit]

    async def last(self) -> int:
        return self._records.last_seq


class MemoryOutput:
    def __init__(self, records: MemoryRecords) -> None:
        self._records = records
        self._output: list[Output] = []
        self._last_output = 0

    async def append(self, pieces: Sequence[NewOutput], now: datetime) -> None:
        for piece in pieces:
            trial = self._records.trials.get(piece.trial_id)
            if trial is None or trial.state is not TrialState.RUNNING or trial.try_number != piece.attempt:
                continue
            self._last_output += 1
            self._output.append(Output(seq=self._last_output, at=now, **piece.model_dump()))
            mine = [kept.seq for kept in self._output if kept.trial_id == piece.trial_id]
            gone = set(mine[:-RING_PIECES])
            self._output = [kept for kept in self._output if kept.seq not in gone]

    async def read(self, trial_ids: Sequence[int], after: int = 0, limit: int = 500) -> list[Output]:
        return [piece for piece in self._output if piece.trial_id in trial_ids and piece.seq > after][:limit]

    async def drop(self, trial_ids: Sequence[int]) -> None:
        self._output = [piece for piece in self._output if piece.trial_id not in trial_ids]
