"""``seatrial job``: list, show, watch, cancel, resume, retry and delete jobs, and run them again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import on_backend, print_json
from seatrial.cli.options import AsJson, JobId, QueueOnly
from seatrial.cli.plain_help import Commands
from seatrial.cli.view.say import say
from seatrial.domain.terminal_text import harmless

if TYPE_CHECKING:
    from seatrial.cli.backend.backend import Backend, JobRow
    from seatrial.domain.model_calls.budget import Amount

app = Commands(help="List, show, watch, cancel, resume, retry and delete jobs; run their trials again.")


@app.command("list")
@on_backend
async def list_jobs(
    backend: Backend,
    limit: Annotated[int, typer.Option("-l", "--limit", min=1, max=1000, help="At most this many jobs.")] = 20,
    before: Annotated[int | None, typer.Option(metavar="JOB", help="Only jobs older than this one.")] = None,
    as_json: AsJson = False,
) -> None:
    """List jobs with their scores, newest first."""
    from seatrial.cli.view.columns import print_table
    from seatrial.cli.view.job_lists import JOBS, job_cells

    jobs = await backend.jobs.page(limit, before)
    if as_json:
        print_json([_row(job) for job in jobs])
        return
    if not jobs:
        say("No jobs. Start one with: seatrial run PATH…")
        return
    print_table(JOBS, [cells for job in jobs for cells in job_cells(job)])


@app.command()
@on_backend
async def show(backend: Backend, job_id: JobId, as_json: AsJson = False) -> None:
    """Show a job and each of its trials."""
    from seatrial.cli.backend.backend import JobRow
    from seatrial.cli.view.columns import print_table
    from seatrial.cli.view.job_lists import TRIALS, trial_cells
    from seatrial.cli.view.progress import spent_text
    from seatrial.cli.view.summary import trial_summary

    job, counts = await backend.jobs.get(job_id)
    rows = await backend.jobs.rows(job_id)
    row = _row(JobRow.of(job, counts))
    del row["scores"]  # `seatrial report` has them
    if as_json:
        content = {**row, "spec": job.spec.model_dump(mode="json"), "spent": _spent(await backend.jobs.spent(job_id))}
        print_json({**content, "results": [trial_summary(found) for found in rows]})
        return
    say(f"job {job.id} ({job.title}): {row['status']}, {row['ended']} of {row['trials']} trials ended")
    if spent := spent_text(await backend.jobs.spent(job_id), job.spec.budget.job):
        say(f"spent {spent}")
    print_table(TRIALS, list(trial_cells(rows)))


@app.command()
@on_backend
async def watch(backend: Backend, job_id: JobId, as_json: AsJson = False) -> int:
    """Follow a job until it ends, then print its result. An interrupt leaves the job running.

    Exit status: 0 if every trial got a valid reward, 3 if some ended in errors."""
    job, _ = await backend.jobs.get(job_id)
    return await backend.runs.watch(job, as_json)


@app.command()
@on_backend
async def failures(backend: Backend, job_id: JobId, as_json: AsJson = False) -> None:
    """Group the failed trials of a job by what decided them: failed tests, error, limit or cause."""
    from seatrial.cli.view.failure_groups import failure_lines

    found = await backend.jobs.failures(job_id)
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    for line in failure_lines(found):
        say(line)


@app.command()
@on_backend
async def cancel(backend: Backend, job_id: JobId) -> None:
    """Cancel a job. Queued trials end now; a worker stops the running ones within seconds."""
    from seatrial.cli.view.figures import plural

    stopped = await backend.jobs.cancel(job_id)
    say(f"job {job_id}: {plural(stopped, 'trial')} cancelled")


@app.command()
@on_backend
async def resume(backend: Backend, job_id: JobId, as_json: AsJson = False) -> int:
    """Continue a job that was interrupted or cancelled. Trials with a result are not run again."""
    job, _ = await backend.jobs.get(job_id)
    await backend.runs.resume(job)
    return await backend.runs.follow_to_end(job, as_json)


@app.command()
@on_backend
async def retry(
    backend: Backend,
    job_id: JobId,
    queue_only: QueueOnly = False,
    as_json: AsJson = False,
) -> int:
    """Run trials of a job again that ended in errors or were cancelled. Earlier tries are kept.

    Trials that passed or failed are final; `seatrial job again` adds attempts."""
    from seatrial.cli.view.figures import plural
    from seatrial.domain.trial import Outcome

    job, _ = await backend.jobs.get(job_id)
    queued = await backend.runs.retry(job, [Outcome.ERROR, Outcome.CANCELLED])
    if queue_only and as_json:
        print_json({"job": job_id, "queued": queued})
        return 0
    if queue_only or not (queued or as_json):
        say(f"job {job_id}: {plural(queued, 'trial')} queued again")
        return 0
    return await backend.runs.follow_to_end(job, as_json)


@app.command()
@on_backend
async def again(
    backend: Backend,
    job_id: JobId,
    trials: Annotated[
        list[int] | None, typer.Option("--trial", metavar="TRIAL", help="Only this trial. Repeatable.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only trials that failed.")] = False,
    queue_only: QueueOnly = False,
    as_json: AsJson = False,
) -> int:
    """Run graded trials of a job again, as further attempts outside of the plan.

    The results of the planned trials stay. Added attempts are shown apart and are not part of the score."""
    from seatrial.cli.view.figures import plural
    from seatrial.domain.trial import Outcome

    job, _ = await backend.jobs.get(job_id)
    outcomes = [Outcome.FAILED] if failed else [Outcome.PASSED, Outcome.FAILED]
    added = await backend.runs.add_attempts(job, outcomes, trials or None)
    if queue_only and as_json:
        print_json({"job": job_id, "added": added})
        return 0
    if queue_only or not (added or as_json):
        say(f"job {job_id}: {plural(len(added), 'attempt')} added")
        return 0
    return await backend.runs.follow_to_end(job, as_json)


@app.command()
@on_backend
async def delete(
    backend: Backend,
    job_id: JobId,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete a job that has ended, with its trials, results and files. This cannot be undone.

    Its tasks stay in the library. Cancel a job that still runs first: `seatrial job cancel`."""
    from seatrial.cli.view.figures import plural

    job, counts = await backend.jobs.get(job_id)
    trials = plural(counts.total + counts.added.total, "trial")
    if not yes:
        typer.confirm(f"Delete job {job.id} ({harmless(job.title)}) with {trials}, results and files?", abort=True)
    await backend.jobs.delete(job_id)
    say(f"job {job_id}: deleted with {trials}")


def _spent(amount: Amount) -> dict[str, object]:
    return {"dollars": amount.dollars, "tokens": amount.tokens, "calls": amount.calls}


def _row(job: JobRow) -> dict[str, object]:
    counts = job.counts
    return {
        "job": job.id,
        "name": job.name,
        "status": job.status,
        "trials": counts.total,
        "ended": counts.ended,
        "passed": counts.passed,
        "failed": counts.failed,
        "errors": counts.error,
        "cancelled": counts.cancelled,
        "added": counts.added.total,
        "created_at": job.created_at,
        "scores": list(job.scores),
    }
