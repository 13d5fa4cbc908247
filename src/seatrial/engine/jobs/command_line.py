"""Shows a job as the commands that start it: ``seatrial run …`` and ``curl …``. The page shows them before a launch."""

from __future__ import annotations

import json
import shlex
from typing import Any

from seatrial.domain.job import AgentSpec, RetryPolicy
from seatrial.domain.model_calls.budget import Budget
from seatrial.domain.model_calls.record import Record
from seatrial.domain.reports.settling import UntilSettled
from seatrial.domain.task import TaskSelection
from seatrial.engine.jobs.request import JobParameters


def run_line(parameters: JobParameters, tasks: tuple[str, ...], agents: tuple[AgentSpec, ...]) -> str:
    """Uses flags if they can express the job, otherwise a job file on standard input."""
    if not _fits_flags(parameters, agents):
        content = json.dumps(_job_file(parameters, tasks), indent=2, ensure_ascii=False)
        return f"seatrial run -c /dev/stdin <<'EOF'\n{content}\nEOF"
    words = ["seatrial", "run"]
    for task in tasks:
        words += ["-t", task]
    if parameters.dataset is not None:
        words += ["-d", parameters.dataset]
    for name in dict.fromkeys(agent.name for agent in agents):
        words += ["-a", name]
    for model in dict.fromkeys(agent.model for agent in agents if agent.model):
        words += ["-m", model]
    words += _selection(parameters.selection) + _until_settled(parameters.until_settled)
    words += _numbers(parameters) + _budget(parameters.budget)
    return shlex.join(words)


def curl_line(url: str, parameters: JobParameters) -> str:
    body = json.dumps(parameters.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
    return shlex.join(["curl", "-X", "POST", url, "-H", "Content-Type: application/json", "-d", body])


def _fits_flags(parameters: JobParameters, agents: tuple[AgentSpec, ...]) -> bool:
    """Flags combine every agent with every model, and cannot set options of single agents."""
    if (
        parameters.labels
        or parameters.env
        or parameters.options
        or any(agent.options or agent.env for agent in parameters.agents)
    ):
        return False
    if parameters.retry.model_copy(update={"max_attempts": RetryPolicy().max_attempts}) != RetryPolicy():
        return False
    if parameters.until_settled is not None and parameters.until_settled.seed is not None:
        return False
    return len(agents) == 1 or not any(agent.model for agent in parameters.agents)


def _job_file(parameters: JobParameters, tasks: tuple[str, ...]) -> dict[str, Any]:
    content = parameters.model_dump(mode="json", exclude_defaults=True)
    content.pop("tasks", None)
    return {**content, "library": list(tasks)} if tasks else content


def _selection(chosen: TaskSelection) -> list[str]:
    words: list[str] = []
    for flag, values in (
        ("-i", chosen.include),
        ("-x", chosen.exclude),
        ("--category", chosen.categories),
        ("--difficulty", chosen.difficulties),
        ("--tag", chosen.tags),
    ):
        for value in values:
            words += [flag, value]
    if chosen.sample is not None:
        words += ["--sample", str(chosen.sample), "--seed", str(chosen.seed)]
    return words + (["-l", str(chosen.limit)] if chosen.limit is not None else [])


def _until_settled(rule: UntilSettled | None) -> list[str]:
    if rule is None:
        return []
    words = ["--until-settled"]
    for flag, value, default in (("--margin", rule.margin, 3.0), ("--alpha", rule.alpha, 0.05)):
        words += [flag, f"{value:g}"] if value != default else []
    return words


def _budget(budget: Budget) -> list[str]:
    words: list[str] = []
    for flag, cap in (("--budget", budget.job), ("--trial-budget", budget.trial)):
        for unit, value in (("usd", cap.dollars), ("tokens", cap.tokens), ("calls", cap.calls)):
            words += [f"{flag}-{unit}", str(value)] if value is not None else []
    return words


def _numbers(parameters: JobParameters) -> list[str]:
    tries = parameters.retry.max_attempts
    given = {
        "-k": parameters.attempts if parameters.attempts != 1 else None,
        "-n": parameters.concurrency,
        "--sandbox": parameters.sandbox if parameters.sandbox != "auto" else None,
        "--timeout-multiplier": f"{parameters.timeout_multiplier:g}" if parameters.timeout_multiplier != 1.0 else None,
        "--trial-limit": f"{parameters.trial_limit_sec:g}" if parameters.trial_limit_sec is not None else None,
        "--max-retries": tries - 1 if tries != RetryPolicy().max_attempts else None,
        "--record": parameters.record if parameters.record is not Record.CALLS else None,
        "--replay": parameters.replay.trial if parameters.replay is not None else None,
        "--replay-miss": parameters.replay.miss if parameters.replay and not parameters.replay.calls_nobody else None,
        "--name": parameters.name or None,
    }
    words = [word for flag, value in given.items() if value is not None for word in (flag, str(value))]
    flags = {"--force-build": parameters.force_build, "--tell-limits": parameters.tell_limits}
    return words + [flag for flag, is_given in flags.items() if is_given]
