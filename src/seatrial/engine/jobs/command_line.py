"""Shows a job as the commands that start it: ``seatrial run …`` and ``curl …``. The page shows them before a launch."""

from __future__ import annotations

import json
import shlex
from typing import Any

from seatrial.domain.job import AgentSpec, RetryPolicy
from seatrial.domain.task import TaskSelection
from seatrial.engine.jobs.request import JobWish


def run_line(wish: JobWish, tasks: tuple[str, ...], agents: tuple[AgentSpec, ...]) -> str:
    """Uses flags if they can express the job, otherwise a job file on standard input."""
    if not _fits_flags(wish, agents):
        content = json.dumps(_job_file(wish, tasks), indent=2, ensure_ascii=False)
        return f"seatrial run -c /dev/stdin <<'EOF'\n{content}\nEOF"
    words = ["seatrial", "run"]
    for task in tasks:
        words += ["-t", task]
    if wish.dataset is not None:
        words += ["-d", wish.dataset]
    for name in dict.fromkeys(agent.name for agent in agents):
        words += ["-a", name]
    for model in dict.fromkeys(agent.model for agent in agents if agent.model):
        words += ["-m", model]
    words += _selection(wish.selection) + _numbers(wish)
    return shlex.join(words)


def curl_line(url: str, wish: JobWish) -> str:
    body = json.dumps(wish.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
    return shlex.join(["curl", "-X", "POST", url, "-H", "Content-Type: application/json", "-d", body])


def _fits_flags(wish: JobWish, agents: tuple[AgentSpec, ...]) -> bool:
    """Flags combine every agent with every model, and cannot set options of single agents."""
    if wish.labels or wish.env or wish.options or any(agent.options or agent.env for agent in wish.agents):
        return False
    if wish.retry.model_copy(update={"max_attempts": RetryPolicy().max_attempts}) != RetryPolicy():
        return False
    return len(agents) == 1 or not any(agent.model for agent in wish.agents)


def _job_file(wish: JobWish, tasks: tuple[str, ...]) -> dict[str, Any]:
    content = wish.model_dump(mode="json", exclude_defaults=True)
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


def _numbers(wish: JobWish) -> list[str]:
    tries = wish.retry.max_attempts
    given = {
        "-k": wish.attempts if wish.attempts != 1 else None,
        "-n": wish.concurrency,
        "--sandbox": wish.sandbox if wish.sandbox != "auto" else None,
        "--timeout-multiplier": f"{wish.timeout_multiplier:g}" if wish.timeout_multiplier != 1.0 else None,
        "--trial-limit": f"{wish.trial_limit_sec:g}" if wish.trial_limit_sec is not None else None,
        "--max-retries": tries - 1 if tries != RetryPolicy().max_attempts else None,
        "--name": wish.name or None,
    }
    words = [word for flag, value in given.items() if value is not None for word in (flag, str(value))]
    return words + (["--force-build"] if wish.force_build else [])
