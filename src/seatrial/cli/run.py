"""``seatrial run``: tasks × agents × models × attempts, here and now. Whoever knows ``harbor run`` knows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from seatrial.cli.request import RunRequest
    from seatrial.domain.job import JobSpec
    from seatrial.domain.task import Task
    from seatrial.wiring import Installation


def run(
    paths: Annotated[list[Path] | None, typer.Argument(help="Tasks: directories, folders of tasks, archives.")] = None,
    path: Annotated[list[Path] | None, typer.Option("-p", "--path", help="The same as PATH.")] = None,
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
    from seatrial.cli.request import parse_options, parse_pairs, read_request
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
    from seatrial.cli.drive import see_job_through
    from seatrial.cli.plan import print_plan, print_queued
    from seatrial.cli.session import open_session

    async with open_session() as session:
        tasks = await choose_tasks(session, request)
        spec = job_spec(request, tasks, session.settings.sandbox)
        for agent in spec.agents:
            refuse_missing_module(agent.name)
        if dry_run:
            print_plan(spec, await session.submission.check(spec), as_json)
            return 0
        job = await session.submission.submit(spec)
        if queue_only:
            print_queued(job, as_json)
            return 0
        return await see_job_through(session, job, as_json)


def refuse_missing_module(agent: str) -> None:
    """An agent by import path, ``pkg.mod:Class``, whose module this Python does not find."""
    from importlib.util import find_spec

    from seatrial.errors import InvalidInput

    module, colon, _ = agent.partition(":")
    if not colon:
        return
    try:
        found = find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise InvalidInput(
            f"There is no module {module} for the agent {agent}.",
            field="agent",
            fix="Say where it is: PYTHONPATH=FOLDER seatrial run ….",
        )


async def choose_tasks(session: Installation, request: RunRequest) -> tuple[Task, ...]:
    """The tasks at the paths and of the dataset, taken into the library, then narrowed by the selection."""
    from seatrial.cli.dataset import dataset_tasks
    from seatrial.errors import InvalidInput

    if not request.paths and request.dataset is None:
        raise InvalidInput(
            "Nothing to run.", field="paths", fix="Name a task, a folder of tasks, an archive, or a dataset with -d."
        )
    found = [task for path in request.paths for task in await session.library.add(path)]
    if request.dataset is not None:
        found += await dataset_tasks(session, request.dataset)
    distinct = {task.digest: task for task in found}
    chosen = request.selection.apply(distinct.values())
    if not chosen:
        raise InvalidInput(
            f"None of {len(distinct)} task(s) is left after the filters.",
            field="tasks",
            fix="Loosen -i, -x or the like.",
        )
    return chosen


def job_spec(request: RunRequest, tasks: tuple[Task, ...], default_sandbox: str) -> JobSpec:
    from seatrial.domain.catalogue import takes_model
    from seatrial.domain.job import JobSpec
    from seatrial.domain.task import TaskRef

    return JobSpec(
        name=request.name,
        tasks=tuple(TaskRef(name=task.name, digest=task.digest) for task in tasks),
        agents=request.matrix(takes_model),
        attempts=request.attempts,
        dataset=request.dataset,
        sandbox=default_sandbox if request.sandbox == "auto" else request.sandbox,
        concurrency=request.concurrency,
        timeout_multiplier=request.timeout_multiplier,
        trial_limit_sec=request.trial_limit_sec,
        force_build=request.force_build,
        retry=request.retry,
    )
