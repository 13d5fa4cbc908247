"""``--dry-run`` and ``--queue-only``: what a job would do, or will do once a worker takes it."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from seatrial.cli.session import print_json
from seatrial.domain.job import Job, JobSpec
from seatrial.domain.task import Task


def print_queued(job: Job, as_json: bool) -> None:
    trials = _trials(job.spec)
    if as_json:
        print_json({"job": job.id, "queued": trials})
        return
    typer.echo(
        f"job {job.id}: {trials} trial(s) queued. Run them with `seatrial worker` or `seatrial job resume {job.id}`."
    )


def print_plan(spec: JobSpec, tasks: Sequence[Task], as_json: bool) -> None:
    trials = _trials(spec)
    if as_json:
        print_json(
            {
                "trials": trials,
                "tasks": [{"name": task.name, "digest": task.digest, "format": task.format} for task in tasks],
                "agents": [agent.model_dump(mode="json") for agent in spec.agents],
                "attempts": spec.attempts,
                "sandbox": spec.sandbox,
            }
        )
        return
    typer.echo(f"{trials} trial(s): {len(tasks)} task(s) × {len(spec.agents)} agent(s) × {spec.attempts} attempt(s)")
    for agent in spec.agents:
        typer.echo(f"  agent  {agent.label}")
    for task in tasks:
        typer.echo(f"  task   {task.name}  ({task.format}, {task.digest[:19]}…)")
    typer.echo(f"  sandbox {spec.sandbox}. Nothing was run.")


def _trials(spec: JobSpec) -> int:
    return len(spec.tasks) * len(spec.agents) * spec.attempts
