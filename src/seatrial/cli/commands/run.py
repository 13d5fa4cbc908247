"""``seatrial run``: runs tasks × agents × models × attempts. Its options follow ``harbor run``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial.cli.options import AsJson, Concurrency, DatasetName, QueueOnly, TaskPaths, with_groups

if TYPE_CHECKING:
    from seatrial.cli.backend.request import RunRequest
    from seatrial.domain.task import TaskSelection

Words = list[str] | None
UNTIL_SETTLED_ATTEMPTS = 5
"""The default maximum for a job that stops when settled."""


@dataclass(frozen=True)
class Tasks:
    """Options that select the tasks."""

    paths: TaskPaths = None
    path: Annotated[list[Path] | None, typer.Option("-p", "--path", help="Same as PATHS. Repeatable.")] = None
    task: Annotated[Words, typer.Option("-t", "--task", help="Task of the library, by name or digest. Repeatable.")] = (
        None
    )
    dataset: DatasetName = None
    include: Annotated[
        Words, typer.Option("-i", "--include", help="Run only tasks whose name matches this glob. Repeatable.")
    ] = None
    exclude: Annotated[
        Words, typer.Option("-x", "--exclude", help="Exclude tasks whose name matches this glob. Repeatable.")
    ] = None
    category: Annotated[Words, typer.Option(help="Run only tasks of this category. Repeatable.")] = None
    difficulty: Annotated[Words, typer.Option(help="Run only tasks of this difficulty. Repeatable.")] = None
    tag: Annotated[Words, typer.Option(help="Run only tasks with this tag. Repeatable.")] = None
    limit: Annotated[
        int | None, typer.Option("-l", "--limit", min=1, help="Maximum number of tasks, after all other filters.")
    ] = None
    sample: Annotated[int | None, typer.Option(min=1, help="Number of tasks to draw at random.")] = None
    seed: Annotated[int, typer.Option(help="Seed for --sample; the same seed draws the same tasks.")] = 0

    def selection(self) -> TaskSelection:
        from seatrial.domain.task import TaskSelection

        return TaskSelection(
            include=tuple(self.include or ()),
            exclude=tuple(self.exclude or ()),
            categories=tuple(self.category or ()),
            difficulties=tuple(self.difficulty or ()),
            tags=tuple(self.tag or ()),
            sample=self.sample,
            seed=self.seed,
            limit=self.limit,
        )

    def flags(self) -> dict[str, Any]:
        chosen = self.selection()
        return {
            "paths": (*(self.paths or ()), *(self.path or ())),
            "library": tuple(self.task or ()),
            "dataset": self.dataset,
            "selection": chosen if chosen != type(chosen)() else None,
        }


@dataclass(frozen=True)
class Agents:
    """Options that select agents and models."""

    agent: Annotated[
        Words,
        typer.Option("-a", "--agent", help="Agent name, or pkg.mod:Class for your own. Repeatable. Default: oracle."),
    ] = None
    model: Annotated[
        Words, typer.Option("-m", "--model", help="Model name as LiteLLM knows it, provider/model. Repeatable.")
    ] = None
    agent_option: Annotated[
        Words, typer.Option("--ak", "--agent-option", help="Option of the agent, as KEY=VALUE. Repeatable.")
    ] = None
    agent_env: Annotated[
        Words, typer.Option("--ae", "--agent-env", help="Environment variable of the agent, KEY=VALUE. Repeatable.")
    ] = None

    def flags(self) -> dict[str, Any]:
        from seatrial.cli.backend.request import parse_options, parse_pairs

        return {
            "agents": tuple(self.agent or ()),
            "models": tuple(self.model or ()),
            "options": parse_options(self.agent_option or (), "--ak"),
            "env": parse_pairs(self.agent_env or (), "--ae"),
        }


@dataclass(frozen=True)
class Execution:
    """Options for running the trials."""

    attempts: Annotated[
        int | None, typer.Option("-k", "--n-attempts", "--attempts", min=1, help="Number of attempts per task.")
    ] = None
    concurrency: Concurrency = None
    sandbox: Annotated[
        str | None,
        typer.Option(
            "-e", "--env", "--sandbox", help="Sandbox: auto, oci, docker, harbor:<environment> or pkg.mod:Class."
        ),
    ] = None
    force_build: Annotated[
        bool, typer.Option("--force-build", help="Build images even if the task names a prebuilt one.")
    ] = False
    timeout_multiplier: Annotated[
        float | None, typer.Option(help="Multiplier for all timeouts of the task. Default: 1.0.")
    ] = None
    trial_limit: Annotated[float | None, typer.Option(help="Timeout for a whole trial, in seconds.")] = None
    max_tries: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of tries of a trial after infrastructure errors. Default: 2."),
    ] = None
    name: Annotated[str | None, typer.Option("--name", help="Name of the job.")] = None

    def flags(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "attempts": self.attempts,
            "concurrency": self.concurrency,
            "sandbox": self.sandbox,
            "timeout_multiplier": self.timeout_multiplier,
            "trial_limit_sec": self.trial_limit,
            "force_build": self.force_build,
            "retry": {"max_attempts": self.max_tries} if self.max_tries else None,
        }


@dataclass(frozen=True)
class Stopping:
    """Options for stopping early."""

    until_settled: Annotated[
        bool,
        typer.Option(
            "--until-settled",
            help="Stop as soon as it is settled which of two configurations is better. See the guide.",
        ),
    ] = False
    margin: Annotated[
        float | None,
        typer.Option(min=0, max=100, help="With --until-settled: a difference below this is none. Points. Default: 3."),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(min=0.001, max=0.5, help="With --until-settled: error probability over all looks. Default: 0.05."),
    ] = None
    most: Annotated[
        int | None,
        typer.Option("--max", min=1, help="With --until-settled: maximum attempts per task. Default: -k, or 5."),
    ] = None

    def flags(self, attempts: int | None) -> dict[str, Any]:
        """``attempts``: the value of -k."""
        from seatrial.domain.settling import UntilSettled

        given = {"margin": self.margin, "alpha": self.alpha}
        if not self.until_settled:
            if self.most is not None or self.margin is not None or self.alpha is not None:
                raise typer.BadParameter("--margin, --alpha and --max need --until-settled.")
            return {}
        if self.most is not None and attempts not in (None, self.most):
            raise typer.BadParameter("-k and --max name different numbers of attempts.")
        rule = {name: value for name, value in given.items() if value is not None}
        return {"until_settled": UntilSettled(**rule), "attempts": self.most or attempts or UNTIL_SETTLED_ATTEMPTS}


@dataclass(frozen=True)
class Handling:
    """Options of the command itself."""

    config: Annotated[
        Path | None, typer.Option("-c", "--config", help="Job file (YAML). Command-line options override it.")
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Validate the job and show its plan; run nothing.")] = False
    queue_only: QueueOnly = False
    as_json: AsJson = False


@with_groups
def run(tasks: Tasks, agents: Agents, execution: Execution, stopping: Stopping, handling: Handling) -> None:
    """Run tasks with agents and print the results.

    Exit status: 0 if every trial got a valid reward, 3 if some ended in errors, 2 for bad usage.
    """
    import asyncio

    from seatrial.cli.backend.request import read_request

    stop = stopping.flags(execution.attempts)
    request = read_request({**tasks.flags(), **agents.flags(), **execution.flags(), **stop}, handling.config)
    raise typer.Exit(asyncio.run(_run(request, handling)))


async def _run(request: RunRequest, handling: Handling) -> int:
    from seatrial.cli.backend.session import open_backend
    from seatrial.cli.view.summary import print_plan, print_queued

    async with open_backend() as backend:
        if handling.dry_run:
            print_plan(await backend.runs.plan(request), handling.as_json)
            return 0
        job = await backend.runs.submit(request)
        if handling.queue_only:
            print_queued(job, backend.runs.advice(job), handling.as_json)
            return 0
        return await backend.runs.follow_to_end(job, handling.as_json)
