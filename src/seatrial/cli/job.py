"""``seatrial job``: list, look at, cancel, resume and retry jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.session import print_json, with_session

if TYPE_CHECKING:
    from seatrial.domain.job import Job, JobCounts
    from seatrial.wiring import Installation

app = typer.Typer(help="List, look at, cancel, resume and retry jobs.", no_args_is_help=True, rich_markup_mode=None)
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
JobId = Annotated[int, typer.Argument(help="A job's number.")]


@app.command("list")
def list_jobs(
    limit: Annotated[int, typer.Option("-l", "--limit", min=1, max=1000, help="At most so many.")] = 20,
    before: Annotated[int | None, typer.Option(help="Only jobs with a smaller number.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List jobs, newest first."""

    async def work(session: Installation) -> None:
        from seatrial.ports.store import Page

        jobs = await session.store.jobs(Page(limit=limit, before=before))
        counts = await session.store.counts([job.id for job in jobs])
        if as_json:
            print_json([_row(job, counts[job.id]) for job in jobs])
            return
        if not jobs:
            typer.echo("No job yet. Start one with: seatrial run PATH")
        for job in jobs:
            row = _row(job, counts[job.id])
            typer.echo(
                f"{job.id:>5}  {row['status']:<10} {row['ended']:>5}/{row['trials']:<5} passed {row['passed']:<5}"
                f" failed {row['failed']:<5} errors {row['errors']:<4} {job.created_at:%Y-%m-%d %H:%M}  {job.title}"
            )

    with_session(work)


@app.command()
def show(job_id: JobId, as_json: JsonFlag = False) -> None:
    """Show a job and each of its trials."""

    async def work(session: Installation) -> None:
        from seatrial.cli.drive import trial_summary
        from seatrial.ports.store import TrialFilter

        job = await session.store.job(job_id)
        counts = (await session.store.counts([job_id]))[job_id]
        rows = [row async for row in session.store.trials(TrialFilter(job_id=job_id))]
        if as_json:
            content = {**_row(job, counts), "spec": job.spec.model_dump(mode="json")}
            print_json({**content, "results": [trial_summary(row) for row in rows]})
            return
        row = _row(job, counts)
        typer.echo(f"job {job.id} ({job.title}): {row['status']}, {row['ended']} of {row['trials']} trials ended")
        for found in rows:
            trial = found.trial
            state = trial.outcome or trial.phase or trial.state
            note = (found.result.message if found.result else "") or ""
            label = f"{trial.agent} / {trial.model}" if trial.model else trial.agent
            typer.echo(f"{trial.id:>7}  {state:<10} {trial.task.name:<32} #{trial.repeat:<3} {label:<36} {note[:80]}")

    with_session(work)


@app.command()
def cancel(job_id: JobId) -> None:
    """Cancel a job: what is queued ends now, what runs is stopped by its worker within seconds."""

    async def work(session: Installation) -> None:
        stopped = await session.store.cancel_job(job_id, session.clock())
        typer.echo(f"job {job_id}: {stopped} trial(s) cancelled or told to stop")

    with_session(work)


@app.command()
def resume(job_id: JobId, as_json: JsonFlag = False) -> None:
    """Go on with a job that was interrupted or whose worker died; ended trials stay as they are."""

    async def work(session: Installation) -> int:
        from seatrial.cli.drive import see_job_through

        return await see_job_through(session, await session.store.job(job_id), as_json)

    raise typer.Exit(with_session(work))


@app.command()
def retry(
    job_id: JobId,
    failed: Annotated[bool, typer.Option("--failed", help="Failed attempts too, not only errors.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Every ended trial.")] = False,
    queue_only: Annotated[
        bool, typer.Option("--queue-only", help="Queue them for other workers; do not wait.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Run trials of a job again, by default those that ended in errors or were cancelled. Earlier attempts are kept."""

    async def work(session: Installation) -> int:
        from seatrial.cli.drive import see_job_through
        from seatrial.domain.trial import Outcome, TrialState
        from seatrial.ports.store import TrialFilter

        outcomes = {Outcome.ERROR, Outcome.CANCELLED}
        if failed or everything:
            outcomes.add(Outcome.FAILED)
        if everything:
            outcomes.add(Outcome.PASSED)
        job = await session.store.job(job_id)
        chosen = TrialFilter(job_id=job_id, states=(TrialState.ENDED,), outcomes=tuple(outcomes))
        ids = [row.trial.id async for row in session.store.trials(chosen)]
        queued = await session.store.retry_trials(ids, session.clock())
        await session.queue.announce(ids)
        if queue_only and as_json:
            print_json({"job": job_id, "queued": queued})
            return 0
        if queue_only or not (queued or as_json):
            typer.echo(f"job {job_id}: {queued} trial(s) queued again")
            return 0
        return await see_job_through(session, job, as_json)

    raise typer.Exit(with_session(work))


def _row(job: Job, counts: JobCounts) -> dict[str, object]:
    return {
        "job": job.id,
        "name": job.title,
        "status": str(counts.status),
        "trials": counts.total,
        "ended": counts.ended,
        "passed": counts.passed,
        "failed": counts.failed,
        "errors": counts.error,
        "cancelled": counts.cancelled,
        "created_at": job.created_at,
    }
