"""``seatrial run``: tasks × agents × models × attempts, here and now. Whoever knows ``harbor run`` knows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from seatrial.cli.backend.request import RunRequest


def run(
    paths: Annotated[list[Path] | None, typer.Argument(help="Tasks: directories, folders of tasks, archives.")] = None,
    path: Annotated[list[Path] | None, typer.Option("-p", "--path", help="The same as PATH.")] = None,
    task: Annotated[
        list[str] | None, typer.Option("-t", "--task", help="A task that was taken in before, by name or digest.")
    ] = None,
    dataset: Annotated[str | None, typer.Option("-d", "--dataset", help="A dataset, NAME or NAME@VERSION.")] = None,
    agent: Annotated[list[str] | None, typer.Option("-a", "--agent", help="Agent name or pkg.mod:Class.")] = None,
    model: Annotated[list[str] | None, typer.Option("-m", "--model", help="Model, as LiteLLM names it.")] = None,
    attempts: Annotated[
        int | None, typer.Option("-k", "--n-attempts", "--attempts", min=1, help="Attempts at each task.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("-n", "--n-concurrent", "--concurrency", min=1, help="Trials at the same time.")
    ] = None,
    sandbox: Annotated[
        str | None,
        typer.Option("-e", "--env", "--sandbox", help="auto, oci, docker, harbor:<environment> or pkg.mod:Class."),
    ] = None,
    include: Annotated[list[str] | None, typer.Option("-i", "--include", help="Only tasks like this glob.")] = None,
    exclude: Annotated[list[str] | None, typer.Option("-x", "--exclude", help="No tasks like this glob.")] = None,
    limit: Annotated[int | None, typer.Option("-l", "--limit", min=1, help="At most so many tasks.")] = None,
    category: Annotated[list[str] | None, typer.Option(help="Only tasks of this category.")] = None,
    difficulty: Annotated[list[str] | None, typer.Option(help="Only tasks of this difficulty.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only tasks with this tag.")] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="So many tasks, drawn at random.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of --sample.")] = 0,
    agent_option: Annotated[
        list[str] | None, typer.Option("--ak", "--agent-option", help="KEY=VALUE option of the agent.")
    ] = None,
    agent_env: Annotated[
        list[str] | None, typer.Option("--ae", "--agent-env", help="KEY=VALUE environment of the agent.")
    ] = None,
    force_build: Annotated[bool, typer.Option("--force-build", help="Build images even where one is pinned.")] = False,
    timeout_multiplier: Annotated[float | None, typer.Option(help="Stretches every time limit of the task.")] = None,
    trial_limit: Annotated[float | None, typer.Option(help="Limit of a whole trial, in seconds.")] = None,
    max_trial_attempts: Annotated[
        int | None, typer.Option("--max-tries", min=1, help="Tries of a trial that faults of ours end.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="A name for the job.")] = None,
    config: Annotated[Path | None, typer.Option("-c", "--config", help="A job file (YAML).")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and show the plan; run nothing.")] = False,
    queue_only: Annotated[
        bool, typer.Option("--queue-only", help="Queue the job for `seatrial worker`; do not wait.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Run tasks with agents and print what came of it.

    Exit status: 0 when every trial got a valid reward, 3 when some ended in errors, 2 for bad usage."""
    from seatrial.cli.backend.request import parse_options, parse_pairs, read_request
    from seatrial.domain.task import TaskSelection

    selection = TaskSelection(
        include=tuple(include or ()),
        exclude=tuple(exclude or ()),
        categories=tuple(category or ()),
        difficulties=tuple(difficulty or ()),
        tags=tuple(tag or ()),
        sample=sample,
        seed=seed,
        limit=limit,
    )
    flags = {
        "name": name,
        "paths": tuple(paths or ()) + tuple(path or ()),
        "library": tuple(task or ()),
        "dataset": dataset,
        "agents": tuple(agent or ()),
        "models": tuple(model or ()),
        "attempts": attempts,
        "concurrency": concurrency,
        "sandbox": sandbox,
        "options": parse_options(agent_option or (), "--ak"),
        "env": parse_pairs(agent_env or (), "--ae"),
        "selection": selection if selection != TaskSelection() else None,
        "timeout_multiplier": timeout_multiplier,
        "trial_limit_sec": trial_limit,
        "force_build": force_build,
        "retry": {"max_attempts": max_trial_attempts} if max_trial_attempts else None,
    }
    request = read_request(flags, config)
    raise typer.Exit(_start(request, dry_run, queue_only, as_json))


def _start(request: RunRequest, dry_run: bool, queue_only: bool, as_json: bool) -> int:
    import asyncio

    return asyncio.run(_run(request, dry_run, queue_only, as_json))


async def _run(request: RunRequest, dry_run: bool, queue_only: bool, as_json: bool) -> int:
    from seatrial.cli.backend.session import open_backend
    from seatrial.cli.view.plan import print_plan, print_queued

    async with open_backend() as backend:
        if dry_run:
            print_plan(await backend.runs.plan(request), as_json)
            return 0
        job = await backend.runs.submit(request)
        if queue_only:
            print_queued(job, backend.runs.advice(job), as_json)
            return 0
        return await backend.runs.see_through(job, as_json)
