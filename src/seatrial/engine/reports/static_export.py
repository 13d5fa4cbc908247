"""Writes the pages of ``static_page`` into an archive, page by page, so that a large job takes little memory.

The command line writes it to a file; the API streams it.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

from seatrial.domain.frozen import Frozen
from seatrial.domain.job import Job, JobCounts
from seatrial.domain.reports.report import JobReport
from seatrial.domain.result import StoredFile
from seatrial.engine.reports.static_page import ExportedTrial, job_page, page_name, trial_page
from seatrial.engine.trials.trial_files import KeptFiles, TryFiles
from seatrial.errors import NotFound
from seatrial.ports.store import TrialRow

_LARGEST = 16 << 20
_TRAJECTORY = "agent/trajectory.json"
_FIRST = "index.html"


class Reader(Protocol):
    """The files of tries, on this machine or at a service."""

    async def files(self, trial_id: int, number: int | None) -> KeptFiles: ...

    def read(self, kept: KeptFiles, file: StoredFile) -> AsyncIterator[bytes]: ...


class StoredReader:
    """Of this installation."""

    def __init__(self, files: TryFiles) -> None:
        self._files = files

    async def files(self, trial_id: int, number: int | None) -> KeptFiles:
        return await self._files.kept(trial_id, number)

    def read(self, kept: KeptFiles, file: StoredFile) -> AsyncIterator[bytes]:
        return self._files.stream(kept, file, 0, file.size)


class ExportedJob(Frozen):
    """What the first page of a job needs."""

    job: Job
    counts: JobCounts
    report: JobReport


async def job_archive(of: ExportedJob, rows: Sequence[TrialRow], reader: Reader, exported: str) -> AsyncIterator[bytes]:
    """``exported`` says when and by what."""
    archive = _Archive()
    yield archive.add(_FIRST, job_page(of.job, of.counts, of.report, rows, exported))
    for row in rows:
        trial = await _exported(reader, row)
        yield archive.add(page_name(row.trial.id), trial_page(trial, exported, of_job=True))
    yield archive.close()


async def trial_archive(row: TrialRow, reader: Reader, exported: str) -> AsyncIterator[bytes]:
    archive = _Archive()
    yield archive.add(_FIRST, trial_page(await _exported(reader, row), exported, of_job=False))
    yield archive.close()


class _Archive:
    """A zip file in pieces: each call returns the bytes that it added."""

    def __init__(self) -> None:
        self._sink = _Sink()
        self._zip = zipfile.ZipFile(self._sink, "w", zipfile.ZIP_DEFLATED)

    def add(self, name: str, content: str) -> bytes:
        self._zip.writestr(name, content)
        return self._sink.take()

    def close(self) -> bytes:
        self._zip.close()
        return self._sink.take()


class _Sink(io.RawIOBase):
    """Cannot seek, so that the archive is written from its beginning to its end."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, piece: Any) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def take(self) -> bytes:
        taken, self._pieces = b"".join(self._pieces), []
        return taken


async def _exported(reader: Reader, row: TrialRow) -> ExportedTrial:
    try:
        kept = await reader.files(row.trial.id, None)
    except NotFound:
        return ExportedTrial(row=row)
    trajectory, missing = await _trajectory(reader, kept)
    left_out = (f"{kept.left_out.count} files were not kept.",) if kept.left_out else ()
    return ExportedTrial(row=row, trajectory=trajectory, files=kept.files, left_out=(*missing, *left_out))


async def _trajectory(reader: Reader, kept: KeptFiles) -> tuple[Any, tuple[str, ...]]:
    """The first one, and what is missing."""
    try:
        file = kept.first(_TRAJECTORY)
        if file.size > _LARGEST:
            return None, (f"The transcript is left out: it has {file.size:,} bytes.",)
        return json.loads(b"".join([piece async for piece in reader.read(kept, file)])), ()
    except NotFound:
        return None, ()
    except (ValueError, RecursionError):
        return None, ("The transcript cannot be read.",)
