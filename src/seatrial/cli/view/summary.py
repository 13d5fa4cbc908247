"""What ``seatrial run`` prints besides its progress: the plan, the queued job, or the result; and the exit status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from seatrial.cli.backend.backend import Plan
from seatrial.cli.backend.session import print_json
from seatrial.cli.view.figures import plural
from seatrial.cli.view.progress import duration
from seatrial.cli.view.say import say
from seatrial.domain.job import Job
from seatrial.domain.reports.report import JobReport
from seatrial.domain.result import Result, TestStatus
from seatrial.domain.trial import Outcome, TrialState
from seatrial.engine.jobs.estimate import Estimate
from seatrial.engine.jobs.request import planned_trials
from seatrial.ports.store import TrialRow

INTERRUPTED = 130


def print_outcome(
    job: Job,
    report: JobReport,
    rows: Sequence[TrialRow],
    wall_seconds: float,
    as_json: bool,
    program: str = "seatrial",
) -> None:
    """``program`` is how the user calls this backend, for the commands that may come next."""
    if as_json:
        print_json(summary(job, report, rows, wall_seconds))
        return
    from seatrial.cli.view.figures import open_console
    from seatrial.cli.view.tables import print_run

    print_run(open_console(), job, report, rows, wall_seconds)
    for line in next_commands(job, rows, program):
        say(line)


def next_commands(job: Job, rows: Sequence[TrialRow], program: str = "seatrial") -> Iterator[str]:
    """What to look at next: the report, the first trial that did not pass, and how to retry errors."""
    yield f"  scores    {program} report {job.id}"
    by_outcome = {outcome: [row.trial.id for row in rows if row.trial.outcome is outcome] for outcome in Outcome}
    telling = by_outcome[Outcome.FAILED] or by_outcome[Outcome.ERROR]
    if telling:
        yield f"  why       {program} trial logs {telling[0]}"
    if by_outcome[Outcome.ERROR] or by_outcome[Outcome.CANCELLED]:
        yield f"  retry     {program} job retry {job.id}"
    if any(row.trial.state is not TrialState.ENDED for row in rows):
        yield f"  continue  {program} job resume {job.id}"


def seconds_of(job: Job, now: datetime) -> float:
    """From the job's creation until its end, or until now."""
    return ((job.ended_at or now) - job.created_at).total_seconds()


def exit_status(rows: Sequence[TrialRow]) -> int:
    """0 if every trial got a valid reward, otherwise 3."""
    return 0 if all(row.trial.outcome is not None and row.trial.outcome.graded for row in rows) else 3


def summary(job: Job, report: JobReport, rows: Sequence[TrialRow], wall_seconds: float) -> dict[str, object]:
    """The JSON object of ``--json``. Counts are of the planned trials."""
    counts = report.counts
    budget = {"budget": job.spec.budget.model_dump(mode="json", exclude_none=True)} if job.spec.budget else {}
    return {
        "job": job.id,
        "trials": counts.planned,
        "passed": counts.passed,
        "failed": counts.failed,
        "errors": counts.error,
        "cancelled": counts.cancelled,
        "added": report.added,
        "wall_seconds": round(wall_seconds, 3),
        **budget,
        "results": [trial_summary(row) for row in rows],
    }


def trial_summary(row: TrialRow) -> dict[str, object]:
    trial, result = row.trial, row.result
    return {
        "trial": trial.id,
        "task": trial.task.name,
        "agent": trial.agent,
        "model": trial.model,
        "attempt": trial.attempt,
        "reruns": trial.reruns,
        "outcome": trial.outcome,
        "reward": result.reward if result else None,
        "rewards": result.rewards if result else {},
        "marks": result.marks if result else (),
        "cause": trial.cause,
        "message": result.message if result else "",
        "seconds": round(result.seconds, 3) if result else None,
        "tries": trial.try_number,
        "tests": _test_counts(result),
        "input_tokens": result.usage.input_tokens if result else None,
        "output_tokens": result.usage.output_tokens if result else None,
        "cost_usd": result.usage.cost_usd if result else None,
        **({"replay": result.replay.model_dump(mode="json")} if result and result.replay else {}),
    }


def _test_counts(result: Result | None) -> dict[str, int] | None:
    if result is None or not result.tests:
        return None
    return {"passed": sum(test.status is TestStatus.PASSED for test in result.tests), "total": len(result.tests)}


def print_queued(job: Job, advice: str, as_json: bool, program: str = "seatrial") -> None:
    trials = planned_trials(job.spec)
    if as_json:
        print_json({"job": job.id, "queued": trials})
        return
    say(f"job {job.id}: {plural(trials, 'trial')} queued. {advice}")
    say(f"  follow    {program} job watch {job.id}")
    say(f"  scores    {program} report {job.id}")


def print_plan(plan: Plan, as_json: bool) -> None:
    spec, tasks = plan.spec, plan.tasks
    trials = planned_trials(spec)
    if as_json:
        content: dict[str, object] = {
            "trials": trials,
            "tasks": [{"name": task.name, "digest": task.digest, "format": task.format} for task in tasks],
            "agents": [agent.model_dump(mode="json") for agent in spec.agents],
            "attempts": spec.attempts,
            "sandbox": spec.sandbox,
        }
        if spec.budget:
            content["budget"] = spec.budget.model_dump(mode="json", exclude_none=True)
        if spec.replay is not None:
            content["replay"] = spec.replay.model_dump(mode="json")
        print_json(content if plan.estimate is None else {**content, "estimate": plan.estimate.model_dump(mode="json")})
        return
    factors = ((len(tasks), "task"), (len(spec.agents), "configuration"), (spec.attempts, "attempt"))
    say(f"{plural(trials, 'trial')}: {' × '.join(plural(number, word) for number, word in factors)}")
    if spec.until_settled is not None:
        say("  stops  once it is settled which of the two is better; these are the most trials that it takes")
    for agent in spec.agents:
        say(f"  agent  {agent.label}")
    for task in tasks:
        say(f"  task   {task.name}  ({task.format}, {task.digest[:19]}…)")
    if spec.budget:
        say(f"  budget {spec.budget.words}")
    if spec.replay is not None:
        say(f"  replay the answers of trial {spec.replay.trial}; others: {spec.replay.miss}")
    if plan.estimate is not None:
        say(f"  takes  {_expectation(plan.estimate)}")
        for warning in plan.estimate.warnings:
            say(f"  note   {warning}")
    say(f"  sandbox {spec.sandbox}. Nothing was run.")


def _expectation(found: Estimate) -> str:
    if found.wall_seconds is None:
        return "not known: there are no earlier trials"
    cost = "" if found.cost_usd is None else f", about ${found.cost_usd:.2f}"
    return f"about {duration(found.wall_seconds)}{cost}, from {plural(found.based_on, 'earlier trial')}"
