"""Estimates time and cost of a job from earlier trials of the same tasks.

Without earlier trials the numbers are missing, and a warning says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from seatrial.domain.frozen import Frozen
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.statistics.significance import Variances, detectable_difference
from seatrial.domain.task import Task
from seatrial.engine.clock import Clock
from seatrial.engine.jobs.budget_rules import budget_warnings
from seatrial.engine.jobs.request import planned_trials
from seatrial.ports.store import Experience, Store

_ALIVE = timedelta(minutes=1)


class Estimate(Frozen):
    trials: int
    tasks: int
    agents: int
    """Configurations: each agent with each of its models."""
    seconds: float | None
    """Sum over all trials; ``None`` without earlier trials."""
    wall_seconds: float | None
    """From start to end, with the workers that run now."""
    cost_usd: float | None
    """``None`` if earlier trials of a model reported no cost."""
    detectable_difference: float | None
    """The smallest difference between two configurations that a job of this size shows with a chance of 80 %; for
    tasks about which nothing is known yet. ``None`` for a single task, which says nothing about others."""
    based_on: int
    """The number of earlier trials behind this estimate."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Estimator:
    store: Store
    clock: Clock
    usual_capacity: int
    takes_model: Callable[[str], bool]

    async def estimate(self, spec: JobSpec, tasks: Sequence[Task]) -> Estimate:
        experience = _History(await self.store.totals.experience([task.name for task in tasks]))
        cells = [(experience.of(task.name, agent), agent) for task in tasks for agent in spec.agents]
        warnings: list[str] = []
        seconds = [found.seconds for found, _ in cells if found is not None]
        costs = [self._cost(found, agent) if spec.calls_providers else 0.0 for found, agent in cells]
        total = math.fsum(seconds) * spec.attempts if len(seconds) == len(cells) else None
        if total is None:
            warnings.append(f"{len(cells) - len(seconds)} of {len(cells)} task and agent pairs have no earlier trial.")
        if total is not None and any(cost is None for cost in costs):
            warnings.append("The cost of earlier trials was not reported.")
        known = [cost for cost in costs if cost is not None]
        places = await self._places(spec, warnings)
        cost = math.fsum(known) * spec.attempts if len(known) == len(cells) else None
        warnings += budget_warnings(spec.budget, planned_trials(spec), cost)
        return Estimate(
            trials=planned_trials(spec),
            tasks=len(tasks),
            agents=len(spec.agents),
            seconds=total,
            wall_seconds=None if total is None else max(total / min(places, planned_trials(spec)), *seconds),
            cost_usd=cost,
            detectable_difference=_detectable(len(tasks), spec.attempts),
            based_on=experience.trials,
            warnings=tuple(warnings),
        )

    def _cost(self, found: Experience | None, agent: AgentSpec) -> float | None:
        if not self.takes_model(agent.name):
            return 0.0
        return found.cost_usd if found is not None else None

    async def _places(self, spec: JobSpec, warnings: list[str]) -> int:
        """Trials that can run at once."""
        alive = [
            worker for worker in await self.store.workers.all(seen_since=self.clock() - _ALIVE) if not worker.draining
        ]
        if not alive:
            warnings.append("No worker is alive: trials wait until one starts.")
        capacity = sum(worker.capacity for worker in alive) or self.usual_capacity
        return max(1, min(capacity, spec.concurrency or capacity))


class _History:
    """The closest earlier trials: the same task, agent and model, else the same agent on other tasks."""

    def __init__(self, found: Sequence[Experience]) -> None:
        self._exact = {(each.task, each.agent, each.model): each for each in found}
        self._found = found
        self._used: set[tuple[str, str, str | None]] = set()

    @property
    def trials(self) -> int:
        return sum(self._exact[key].trials for key in self._used)

    def of(self, task: str, agent: AgentSpec) -> Experience | None:
        if exact := self._exact.get((task, agent.name, agent.model)):
            self._used.add((task, agent.name, agent.model))
            return exact
        alike = [each for each in self._found if (each.agent, each.model) == (agent.name, agent.model)]
        if not alike:
            return None
        self._used.update((each.task, each.agent, each.model) for each in alike)
        costs = [each.cost_usd for each in alike if each.cost_usd is not None]
        return Experience(
            task=task,
            agent=agent.name,
            model=agent.model,
            trials=sum(each.trials for each in alike),
            seconds=math.fsum(each.seconds for each in alike) / len(alike),
            cost_usd=math.fsum(costs) / len(costs) if costs else None,
        )


def _detectable(tasks: int, attempts: int) -> float | None:
    return detectable_difference(tasks, attempts, attempts, Variances()) if tasks > 1 else None
