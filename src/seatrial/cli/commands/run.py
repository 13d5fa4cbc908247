"""``seatrial run``: runs tasks × agents × models × attempts. Its options follow ``harbor run``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from seatrial.cli.options import AsJson, Concurrency, DatasetName, QueueOnly, TaskPaths, with_groups
from seatrial.domain.model_calls.record import Record, ReplayMiss

if TYPE_CHECKING:
    from seatrial.cli.backend.request import RunRequest

Words = list[str] | None
UNTIL_SETTLED_ATTEMPTS = 5
"""The default maximum for a job that stops when settled."""


@dataclass(frozen=True)
class Tasks:
    """Options that select the tasks."""

    TITLE: ClassVar = "Tasks"

    paths: TaskPaths = None
    path: Annotated[
        list[Path] | None, typer.Option("-p", "--path", metavar="PATH", help="The same as the argument. Repeatable.")
    ] = None
    task: Annotated[
        Words, typer.Option("-t", "--task", metavar="TASK", help="Task of the library, by name or digest. Repeatable.")
    ] = None
    dataset: DatasetName = None
    include: Annotated[
        Words, typer.Option("-i", "--include", metavar="GLOB", help="Only tasks whose name matches. Repeatable.")
    ] = None
    exclude: Annotated[
        Words, typer.Option("-x", "--exclude", metavar="GLOB", help="Leave out tasks whose name matches. Repeatable.")
    ] = None
    category: Annotated[Words, typer.Option(metavar="NAME", help="Only tasks of this category. Repeatable.")] = None
    difficulty: Annotated[Words, typer.Option(metavar="NAME", help="Only tasks of this difficulty. Repeatable.")] = None
    tag: Annotated[Words, typer.Option(metavar="NAME", help="Only tasks with this tag. Repeatable.")] = None
    limit: Annotated[
        int | None, typer.Option("-l", "--limit", min=1, help="At most this many tasks, after all other filters.")
    ] = None
    sample: Annotated[int | None, typer.Option(min=1, help="Draw this many tasks at random.")] = None
    seed: Annotated[int, typer.Option(help="Seed for --sample; the same seed draws the same tasks.")] = 0

    def flags(self) -> dict[str, Any]:
        selection = {
            "include": self.include,
            "exclude": self.exclude,
            "categories": self.category,
            "difficulties": self.difficulty,
            "tags": self.tag,
            "sample": self.sample,
            "seed": self.seed,
            "limit": self.limit,
        }
        return {
            "paths": (*(self.paths or ()), *(self.path or ())),
            "library": tuple(self.task or ()),
            "dataset": self.dataset,
            "selection": {name: value for name, value in selection.items() if value},
        }


@dataclass(frozen=True)
class Agents:
    """Options that select agents and models."""

    TITLE: ClassVar = "Agents & models"

    agent: Annotated[
        Words,
        typer.Option(
            "-a", "--agent", metavar="AGENT", help="Name, or pkg.mod:Class for your own. Repeatable. Default: oracle."
        ),
    ] = None
    model: Annotated[
        Words, typer.Option("-m", "--model", metavar="MODEL", help="PROVIDER/NAME, as LiteLLM knows it. Repeatable.")
    ] = None
    agent_option: Annotated[
        Words, typer.Option("--agent-option", "--ak", metavar="KEY=VALUE", help="Option of the agents. Repeatable.")
    ] = None
    agent_env: Annotated[
        Words,
        typer.Option(
            "--agent-env", "--ae", metavar="KEY=VALUE", help="Environment variable of the agents. Repeatable."
        ),
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
        int | None, typer.Option("-k", "--attempts", "--n-attempts", min=1, help="Attempts at each task. Default: 1.")
    ] = None
    concurrency: Concurrency = None
    sandbox: Annotated[
        str | None,
        typer.Option(
            "-e",
            "--sandbox",
            "--env",
            metavar="SANDBOX",
            help="auto, oci, docker, harbor:ENVIRONMENT or pkg.mod:Class. Default: auto.",
        ),
    ] = None
    force_build: Annotated[
        bool, typer.Option("--force-build", help="Build images even if the task names a prebuilt one.")
    ] = False
    timeout_multiplier: Annotated[
        float | None, typer.Option(metavar="FACTOR", help="Multiplies all timeouts of the tasks. Default: 1.0.")
    ] = None
    trial_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Timeout of a whole trial.")] = None
    max_retries: Annotated[
        int | None, typer.Option(min=0, help="Max retries of a trial after infrastructure errors. Default: 1.")
    ] = None
    max_tries: Annotated[int | None, typer.Option(min=1, hidden=True, help="The same plus the first try.")] = None
    record: Annotated[
        Record | None,
        typer.Option("--record", help="What to keep of model calls. full: also requests and answers."),
    ] = None
    replay: Annotated[
        int | None,
        typer.Option(
            "--replay",
            min=1,
            metavar="TRIAL",
            help="Answer model calls from the record of this trial, which ran with --record full. Needs no key.",
        ),
    ] = None
    replay_miss: Annotated[
        ReplayMiss | None,
        typer.Option(
            "--replay-miss", help="With --replay, for a call that is not in the record. live: ask the real provider."
        ),
    ] = None
    tell_limits: Annotated[
        bool, typer.Option("--tell-limits", help="Say in the instruction how much time and budget the agent has.")
    ] = False
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name of the job.")] = None

    def flags(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "attempts": self.attempts,
            "concurrency": self.concurrency or None,
            "sandbox": self.sandbox,
            "timeout_multiplier": self.timeout_multiplier,
            "trial_limit_sec": self.trial_limit,
            "force_build": self.force_build,
            "record": self.record.value if self.record is not None else None,
            "replay": self._replay(),
            "tell_limits": self.tell_limits,
            "retry": {"max_attempts": tries} if (tries := self._tries()) else None,
        }

    def _replay(self) -> dict[str, Any] | None:
        if self.replay is None:
            if self.replay_miss is not None:
                raise typer.BadParameter("--replay-miss needs --replay.")
            return None
        return {"trial": self.replay, **_given({"miss": self.replay_miss})}

    def _tries(self) -> int | None:
        return self.max_tries if self.max_retries is None else self.max_retries + 1


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
        typer.Option(
            min=0, max=100, help="With --until-settled: smaller differences count as none; in points. Default: 3."
        ),
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
        from seatrial.domain.reports.settling import UntilSettled

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
class Spending:
    """Options for caps on what models may cost."""

    TITLE: ClassVar = "Budgets"

    budget_usd: Annotated[
        float | None, typer.Option(metavar="DOLLARS", help="The most that the whole job may spend on models.")
    ] = None
    budget_tokens: Annotated[int | None, typer.Option(min=1, metavar="N", help="The same in tokens.")] = None
    budget_calls: Annotated[int | None, typer.Option(min=1, metavar="N", help="The same in calls to models.")] = None
    trial_budget_usd: Annotated[
        float | None,
        typer.Option(metavar="DOLLARS", help="The most that each trial may spend on models, over all its tries."),
    ] = None
    trial_budget_tokens: Annotated[int | None, typer.Option(min=1, metavar="N", help="The same in tokens.")] = None
    trial_budget_calls: Annotated[int | None, typer.Option(min=1, metavar="N", help="The same in calls to models.")] = (
        None
    )

    def flags(self) -> dict[str, Any]:
        """Only the caps that were given; those of a job file stay otherwise."""
        job = {"dollars": self.budget_usd, "tokens": self.budget_tokens, "calls": self.budget_calls}
        trial = {
            "dollars": self.trial_budget_usd,
            "tokens": self.trial_budget_tokens,
            "calls": self.trial_budget_calls,
        }
        caps = {"job": _given(job), "trial": _given(trial)}
        return {"budget": {name: cap for name, cap in caps.items() if cap}}


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Handling:
    """Options of the command itself."""

    config: Annotated[
        Path | None,
        typer.Option("-c", "--config", metavar="FILE", help="Job file (YAML). Options given here override it."),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Validate the job and show its plan; run nothing.")] = False
    queue_only: QueueOnly = False
    as_json: AsJson = False


@with_groups
def run(
    tasks: Tasks, agents: Agents, execution: Execution, stopping: Stopping, spending: Spending, handling: Handling
) -> None:
    """Run tasks with agents and print the results.

    Exit status: 0 if every trial got a valid reward, 3 if some ended in errors, 2 for bad usage.
    """
    import asyncio

    from seatrial.cli.backend.request import read_request

    stop = stopping.flags(execution.attempts)
    flags = {**tasks.flags(), **agents.flags(), **execution.flags(), **stop, **spending.flags()}
    request = read_request(flags, handling.config)
    raise typer.Exit(asyncio.run(_run(request, handling)))


async def _run(request: RunRequest, handling: Handling) -> int:
    from seatrial.cli.backend.session import open_backend
    from seatrial.cli.view.say import say_notices
    from seatrial.cli.view.summary import print_plan, print_queued
    from seatrial.domain.agents.catalogue import takes_model
    from seatrial.engine.jobs.notices import notices
    from seatrial.wiring import model_names

    say_notices(notices(request, request.matrix(takes_model), model_names))
    if handling.dry_run and handling.queue_only:
        say_notices(["--queue-only has no effect with --dry-run."])
    async with open_backend() as backend:
        if handling.dry_run:
            print_plan(await backend.runs.plan(request), handling.as_json)
            return 0
        job = await backend.runs.submit(request)
        if handling.queue_only:
            print_queued(job, backend.runs.advice(job), handling.as_json, backend.runs.program)
            return 0
        return await backend.runs.follow_to_end(job, handling.as_json)
