"""Output of ``--dry-run`` and ``--queue-only``: what a job would do, or will do when a worker claims it."""

from __future__ import annotations

from seatrial.cli.backend.backend import Plan
from seatrial.cli.backend.session import print_json
from seatrial.cli.view.progress import duration
from seatrial.cli.view.say import say
from seatrial.domain.job import Job
from seatrial.engine.jobs.estimate import Estimate
from seatrial.engine.jobs.request import planned_trials


def print_queued(job: Job, advice: str, as_json: bool) -> None:
    trials = planned_trials(job.spec)
    if as_json:
        print_json({"job": job.id, "queued": trials})
        return
    say(f"job {job.id}: {trials} trial(s) queued. {advice}")


def print_plan(plan: Plan, as_json: bool) -> None:
    spec, tasks = plan.spec, plan.tasks
    trials = planned_trials(spec)
    if as_json:
        content = {
            "trials": trials,
            "tasks": [{"name": task.name, "digest": task.digest, "format": task.format} for task in tasks],
            "agents": [agent.model_dump(mode="json") for agent in spec.agents],
            "attempts": spec.attempts,
            "sandbox": spec.sandbox,
        }
        print_json(content if plan.estimate is None else {**content, "estimate": plan.estimate.model_dump(mode="json")})
        return
    say(f"{trials} trial(s): {len(tasks)} task(s) × {len(spec.agents)} agent(s) × {spec.attempts} attempt(s)")
    for agent in spec.agents:
        say(f"  agent  {agent.label}")
    for task in tasks:
        say(f"  task   {task.name}  ({task.format}, {task.digest[:19]}…)")
    if plan.estimate is not None:
        say(f"  takes  {_expectation(plan.estimate)}")
        for warning in plan.estimate.warnings:
            say(f"  note   {warning}")
    say(f"  sandbox {spec.sandbox}. Nothing was run.")


def _expectation(found: Estimate) -> str:
    if found.wall_seconds is None:
        return "not known: there are no earlier trials"
    cost = "" if found.cost_usd is None else f", about ${found.cost_usd:.2f}"
    return f"about {duration(found.wall_seconds)}{cost}, from {found.based_on} earlier trial(s)"
