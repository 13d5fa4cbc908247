"""Configurations over several jobs: which are the same, and what to call those that are not.

Within a job a label is enough. Over jobs, two agents with the same name and model may still have other options, so that
only equal ones may share a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from seatrial.domain.frozen import Frozen
from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.engine.reports.reporting import configuration_labels


class Configuration(Frozen):
    """Everything of a job, except its tasks, that is meant to decide how well an agent does."""

    agent: AgentSpec
    timeout_multiplier: float = 1.0
    trial_limit_sec: float | None = None
    instruction: str | None = None

    @property
    def key(self) -> str:
        return json.dumps(self.model_dump(mode="json"), sort_keys=True)

    @property
    def conditions(self) -> str:
        """What the job changed for all agents."""
        found = []
        if self.timeout_multiplier != 1.0:
            found.append(f"timeouts × {self.timeout_multiplier:g}")
        if self.trial_limit_sec is not None:
            found.append(f"trials limited to {self.trial_limit_sec:g} s")
        if self.instruction is not None:
            found.append("own instruction")
        return ", ".join(found)


def configurations_of(spec: JobSpec) -> tuple[Configuration, ...]:
    """In the order of the job's agents."""
    return tuple(
        Configuration(
            agent=agent,
            timeout_multiplier=spec.timeout_multiplier,
            trial_limit_sec=spec.trial_limit_sec,
            instruction=spec.instruction,
        )
        for agent in spec.agents
    )


def agents_by_label(job: Job) -> dict[str, AgentSpec]:
    return dict(zip(configuration_labels(job.spec.agents), job.spec.agents, strict=True))


def labels_over_jobs(found: Iterable[Configuration]) -> dict[str, str]:
    """A distinct label for each configuration, by key."""
    distinct = {each.key: each for each in found}
    agents = {_agent_key(each): each.agent for each in sorted(distinct.values(), key=lambda each: each.key)}
    names = dict(zip(agents, configuration_labels(tuple(agents.values())), strict=True))
    labels = {}
    for key, each in distinct.items():
        name = names[_agent_key(each)]
        labels[key] = f"{name} [{each.conditions}]" if each.conditions else name
    return _numbered(labels)


def _numbered(labels: dict[str, str]) -> dict[str, str]:
    """Two instructions give the same label; a number tells them apart."""
    times: dict[str, int] = {}
    numbered = {}
    for key in sorted(labels):
        label = labels[key]
        times[label] = times.get(label, 0) + 1
        numbered[key] = label if times[label] == 1 else f"{label} #{times[label]}"
    return numbered


def _agent_key(configuration: Configuration) -> str:
    return json.dumps(configuration.agent.model_dump(mode="json"), sort_keys=True)
