"""``seatrial job``: list, show, cancel, resume, retry jobs and run them again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import on_backend, print_json
from seatrial.cli.options import AsJson, JobId, QueueOnly
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.cli.backend.backend import Backend, JobRow

app = typer.Typer(
    help="List, show, cancel, resume and retry jobs; run their trials again.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
@on_backend
async def list_jobs(
    backend: Backend,
    limit: Annotated[int, typer.Option("-l", "--limit", min=1, max=1000, help="Maximum number of jobs.")] = 20,
    before: Annotated[int | None, typer.Option(help="List only jobs with a smaller number than this.")] = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    from seatrial.cli.view.tables import score_parts

    jobs = await backend.jobs.page(limit, before)
    if as_json:
        print_json([_row(job) for job in jobs])
        return
    if not jobs:
        say("No jobs. Start one with: seatrial run PATH")
    for job in jobs:
        row = _row(job)
        say(
            f"{job.id:>5}  {row['status']:<10} {row['ended']:>5}/{row['trials']:<5} passed {row['passed']:<5}"
            f" failed {row['failed']:<5} errors {row['errors']:<4} {job.created_at:%Y-%m-%d %H:%M}  {job.name}"
        )
        for line in job.scores:
            say(f"       {'  '.join(score_parts(line))}  {line.label}")


@app.command()
@on_backend
async def show(backend: Backend, job_id: JobId, as_json: AsJson = False) -> None:
    """Show a job and each of its trials."""
    from seatrial.cli.backend.backend import JobRow
    from seatrial.cli.view.summary import trial_summary

    job, counts = await backend.jobs.get(job_id)
    rows = await backend.jobs.rows(job_id)
    row = _row(JobRow.of(job, counts))
    del row["scores"]  # `seatrial report` has them
    if as_json:
        content = {**row, "spec": job.spec.model_dump(mode="json")}
        print_json({**content, "results": [trial_summary(found) for found in rows]})
        return
    say(f"job {job.id} ({job.title}): {row['status']}, {row['ended']} of {row['trials']} trials ended")
    for found in rows:
        trial = found.trial
        state = trial.outcome or trial.phase or trial.state
        note = (found.result.message if found.result else "") or ""
        label = f"{trial.agent} / {trial.model}" if trial.model else trial.agent
        say(f"{trial.id:>7}  {state:<10} {trial.task.name:<32} #{trial.attempt:<3} {label:<36} {note[:80]}")


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
    stopped = await backend.jobs.cancel(job_id)
    say(f"job {job_id}: {stopped} trial(s) cancelled")


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
    from seatrial.domain.trial import Outcome

    job, _ = await backend.jobs.get(job_id)
    queued = await backend.runs.retry(job, [Outcome.ERROR, Outcome.CANCELLED])
    if queue_only and as_json:
        print_json({"job": job_id, "queued": queued})
        return 0
    if queue_only or not (queued or as_json):
        say(f"job {job_id}: {queued} trial(s) queued again")
        return 0
    return await backend.runs.follow_to_end(job, as_json)


@app.command()
@on_backend
async def again(
    backend: Backend,
    job_id: JobId,
    trials: Annotated[list[int] | None, typer.Option("--trial", help="Only this trial. Repeatable.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only trials that failed.")] = False,
    queue_only: QueueOnly = False,
    as_json: AsJson = False,
) -> int:
    """Run graded trials of a job again, as further attempts outside of the plan.

    The results of the planned trials stay. Added attempts are shown apart and are not part of the score."""
    from seatrial.domain.trial import Outcome

    job, _ = await backend.jobs.get(job_id)
    outcomes = [Outcome.FAILED] if failed else [Outcome.PASSED, Outcome.FAILED]
    added = await backend.runs.add_attempts(job, outcomes, trials or None)
    if queue_only and as_json:
        print_json({"job": job_id, "added": added})
        return 0
    if queue_only or not (added or as_json):
        say(f"job {job_id}: {len(added)} attempt(s) added")
        return 0
    return await backend.runs.follow_to_end(job, as_json)


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
