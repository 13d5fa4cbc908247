"""Reads the trials of a job for ``domain.report`` and ``domain.comparison``, for the CLI and the API.

Gives configurations and tasks distinct labels if their names are ambiguous.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from seatrial.domain.comparison import Side, side
from seatrial.domain.fact import TrialFact, by_configuration
from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.domain.report import JobReport, report
from seatrial.domain.result import Result
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Trial, TrialState
from seatrial.engine.reports.summaries import summaries_of
from seatrial.ports.store import TrialFilter, TrialRow, TrialStore


async def report_job(trials: TrialStore, job: Job, *, with_tests: bool = False) -> JobReport:
    return report_rows([row async for row in trials.trials(TrialFilter(job_id=job.id))], job, with_tests=with_tests)


def report_rows(rows: Iterable[TrialRow], job: Job, *, with_tests: bool = False) -> JobReport:
    """The report of a job whose rows were already read."""
    facts = facts_of(rows, job.spec, with_tests=with_tests)
    return report(facts, spec=job.spec, order=configuration_labels(job.spec.agents))


async def sides_of_job(trials: TrialStore, job: Job) -> tuple[Side, ...]:
    """One side for each configuration of the job, in the job's order."""
    names = _Names(job.spec)
    # A comparison needs outcomes only.
    facts = [names.fact(summary.trial) async for summary in summaries_of(trials, job.id)]
    found = by_configuration(facts, configuration_labels(job.spec.agents))
    return tuple(side(label, of_label) for label, of_label in found.items())


def facts_of(rows: Iterable[TrialRow], spec: JobSpec, *, with_tests: bool = False) -> list[TrialFact]:
    """``with_tests``: include results of tests, which take far more memory than everything else."""
    names = _Names(spec)
    return [
        # Before a trial has ended, its result is that of an earlier try and does not count.
        _with_result(names.fact(row.trial), row.result, with_tests)
        if row.result is not None and row.trial.state is TrialState.ENDED
        else names.fact(row.trial)
        for row in rows
    ]


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

    def fact(self, trial: Trial) -> TrialFact:
        return TrialFact(
            task=self._tasks.get(trial.task.digest, trial.task.name),
            configuration=self._labels[trial.agent_index],
            attempt=trial.attempt,
            digest=trial.task.digest,
            outcome=trial.outcome,
            cause=trial.cause,
        )


def _with_result(fact: TrialFact, result: Result, with_tests: bool) -> TrialFact:
    return replace(
        fact,
        marks=result.marks,
        reward=result.reward,
        seconds=result.seconds,
        input_tokens=result.usage.input_tokens,
        cached_tokens=result.usage.cached_tokens,
        output_tokens=result.usage.output_tokens,
        cost_usd=result.usage.cost_usd,
        tests=result.tests if with_tests else (),
    )
