"""``seatrial job export`` and ``seatrial trial export``: pages that open from disk, as one archive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import on_backend
from seatrial.cli.options import JobId, TrialId
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.cli.backend.backend import Backend

Output = Annotated[Path, typer.Argument(metavar="FILE.zip", help="Archive to write. It must not exist.")]


@on_backend
async def export_job(backend: Backend, job_id: JobId, output: Output) -> None:
    """Export a job as pages that open from disk: scores, trials, tests, transcripts and lists of files.

    They need no network and run no script. Notes and tags are not part of them."""
    from seatrial.engine.reports.static_export import ExportedJob, job_archive

    job, counts = await backend.jobs.get(job_id)
    _, report = await backend.jobs.report(job_id, False)
    rows = await backend.jobs.rows(job_id)
    shown = ExportedJob(job=job, counts=counts, report=report)
    await _write(output, job_archive(shown, rows, backend.trials, _exported()))
    say(f"{output}: {len(rows)} trial(s). Unpack it and open index.html.")


@on_backend
async def export_trial(backend: Backend, trial_id: TrialId, output: Output) -> None:
    """Export a trial as a page that opens from disk: its result, tests, transcript and list of files."""
    from seatrial.engine.reports.static_export import trial_archive

    row, _ = await backend.trials.get(trial_id)
    await _write(output, trial_archive(row, backend.trials, _exported()))
    say(f"{output}: trial {trial_id}. Unpack it and open index.html.")


async def _write(output: Path, pieces: AsyncIterator[bytes]) -> None:
    from seatrial.errors import InvalidInput

    try:
        with output.open("xb") as archive:
            async for piece in pieces:
                archive.write(piece)
    except FileExistsError as error:
        raise InvalidInput(f"{output} exists.", field="output", fix="Choose another name, or remove it.") from error
    except OSError as error:
        raise InvalidInput(f"{output} cannot be written: {error.strerror}.", field="output") from error


def _exported() -> str:
    from datetime import UTC, datetime

    from seatrial import __version__

    return f"Exported {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by Seatrial {__version__}."
