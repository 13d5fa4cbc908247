"""Reads the trials of a job for ``domain.reports``, for the CLI and the API: its report, and its failures in groups.

Gives configurations and tasks distinct labels if their names are ambiguous.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from seatrial.domain.comparisons.noise import SideOfNoise, Strained, noise_within
from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.domain.reports.fact import TrialFact
from seatrial.domain.reports.failures import Failures, group_failures
from seatrial.domain.reports.report import JobReport, report
from seatrial.domain.result import TestResult
from seatrial.domain.task import TaskRef
from seatrial.engine.reports.settled import settled_of
from seatrial.ports.store import TrialFilter, TrialNumbers, TrialStore

Tests = Mapping[int, tuple[TestResult, ...]]
"""Results of the verifier's tests, by trial."""


async def report_job(trials: TrialStore, job: Job, *, with_tests: bool = False) -> JobReport:
    """``with_tests``: read per-test results too, which take far more time and memory than all the rest."""
    numbers = await trials.numbers(job.id)
    tests = await _tests_of(trials, job) if with_tests else {}
    return await asyncio.to_thread(report_numbers, numbers, job, tests)  # others may not wait for the draws


async def failures_of(trials: TrialStore, job: Job) -> Failures:
    """The failed trials of a job in groups. Planned trials only: an added attempt is outside of the job's numbers."""
    labels, names = configuration_labels(job.spec.agents), task_names(job.spec.tasks)
    found = [
        row.trial._replace(task=names.get(row.digest, row.trial.task), configuration=labels[row.agent_index])
        for row in await trials.failed(job.id)
    ]
    return await asyncio.to_thread(group_failures, found)


def report_numbers(numbers: Iterable[TrialNumbers], job: Job, tests: Tests = MappingProxyType({})) -> JobReport:
    numbers = tuple(numbers)
    labels = configuration_labels(job.spec.agents)
    settled = settled_of(job.spec, numbers, labels)
    found = report(facts_of(numbers, job.spec, tests), spec=job.spec, order=labels, settled=settled)
    noise = noise_within(sides_of_noise(numbers, job.spec))
    return found.model_copy(update={"notices": (*found.notices, *noise)}) if noise else found


def sides_of_noise(numbers: Iterable[TrialNumbers], spec: JobSpec) -> list[SideOfNoise]:
    """What the graded trials of each configuration suffered."""
    sides = [
        SideOfNoise(label, agent.model, [])
        for label, agent in zip(configuration_labels(spec.agents), spec.agents, strict=True)
    ]
    found: list[list[Strained]] = [[] for _ in sides]
    for each in numbers:
        if each.outcome is not None and each.outcome.graded and not each.added:
            found[each.agent_index].append(Strained(each.seconds or 0.0, each.suffered))
    return [side._replace(trials=trials) for side, trials in zip(sides, found, strict=True)]


def facts_of(numbers: Iterable[TrialNumbers], spec: JobSpec, tests: Tests = MappingProxyType({})) -> list[TrialFact]:
    names = _Names(spec)
    return [names.fact(each, tests.get(each.trial_id, ())) for each in numbers]


def configuration_labels(agents: Sequence[AgentSpec]) -> tuple[str, ...]:
    """A label for each agent of a job. Options are added if agent and model are not unique."""
    alone = tuple(agent.label for agent in agents)
    if len(set(alone)) == len(alone):
        return alone
    plain = Counter(alone)
    labels = [
        agent.label if plain[agent.label] == 1 else f"{agent.label} {_own_options(agent, agents)}".strip()
        for agent in agents
    ]
    repeated = Counter(labels)
    return tuple(
        label if repeated[label] == 1 else f"{label} #{position}" for position, label in enumerate(labels, start=1)
    )


def task_names(tasks: Sequence[TaskRef]) -> dict[str, str]:
    """The label of each task, by digest: its name, with a part of the digest if two tasks share the name."""
    distinct = {task.digest: task.name for task in tasks}
    times = Counter(distinct.values())
    return {
        digest: name if times[name] == 1 else f"{name}@{digest.removeprefix('sha256:')[:8]}"
        for digest, name in distinct.items()
    }


def _own_options(agent: AgentSpec, agents: Sequence[AgentSpec]) -> str:
    """The options in which an agent differs from agents with the same label."""
    alike = [other for other in agents if other.label == agent.label]
    shared = [name for name, value in agent.options.items() if all(other.options.get(name) == value for other in alike)]
    own = [f"{name}={value}" for name, value in sorted(agent.options.items()) if name not in shared]
    return f"({', '.join(own)})" if own else ""


class _Names:
    """The labels of a job's configurations and tasks."""

    def __init__(self, spec: JobSpec) -> None:
        self._labels = configuration_labels(spec.agents)
        self._tasks = task_names(spec.tasks)

    def fact(self, trial: TrialNumbers, tests: tuple[TestResult, ...] = ()) -> TrialFact:
        spent = trial.spent
        # Until a trial ended, its result is that of an earlier try, which no longer counts. Its cost does.
        ended = trial.outcome is not None
        return TrialFact(
            task=self._tasks.get(trial.task.digest, trial.task.name),
            configuration=self._labels[trial.agent_index],
            attempt=trial.attempt,
            added=trial.added,
            digest=trial.task.digest,
            outcome=trial.outcome,
            cause=trial.cause,
            marks=trial.marks if ended else (),
            reward=trial.reward if ended else None,
            seconds=trial.seconds if ended else None,
            tries=trial.tries,
            input_tokens=spent.input_tokens,
            cached_tokens=spent.cached_tokens,
            output_tokens=spent.output_tokens,
            cost_usd=spent.cost_usd,
            tests=tests if ended else (),
        )


async def _tests_of(trials: TrialStore, job: Job) -> dict[int, tuple[TestResult, ...]]:
    rows = trials.each(TrialFilter(job_id=job.id))
    return {row.trial.id: row.result.tests async for row in rows if row.result is not None and row.result.tests}
