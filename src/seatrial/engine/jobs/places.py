"""Whether there is a worker for a job: refuses what no machine could hold, and says what a waiting job waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from seatrial.domain.fleet.needs import Needs, needs_of
from seatrial.domain.fleet.packing import Packing, Size
from seatrial.domain.job import JobSpec
from seatrial.domain.task import Task
from seatrial.engine.clock import Clock
from seatrial.errors import Unsupported
from seatrial.ports.store import Store, WorkerRow

type Demands = Mapping[tuple[str, int], Needs]
"""By the digest of a task and the index of an agent."""


def demands_of(spec: JobSpec, tasks: Iterable[Task]) -> Demands:
    return {
        (task.digest, index): needs_of(task, spec.sandbox, agent.name)
        for task in tasks
        for index, agent in enumerate(spec.agents)
    }


@dataclass(frozen=True)
class Places:
    """The workers that are alive, and the machines that may come."""

    store: Store
    clock: Clock
    heard_within: timedelta
    worker_is_dead: Callable[[str], bool] = lambda worker: False
    largest: Packing | None = None
    """A worker on the largest machine that there may be."""
    here: Packing | None = None
    """The worker that a command starts on this machine."""
    takes_any: bool = False
    """Whether a command starts a worker that counts its trials."""

    async def require(self, spec: JobSpec, tasks: Iterable[Task]) -> None:
        """Raises ``Unsupported`` if a task is larger than every machine. Without workers, nothing is known."""
        living = await self.living()
        if self.takes_any or any(worker.packing is None for worker in living):
            return
        if self.here is not None and spec.concurrency is not None:
            return
        rooms = [worker.packing for worker in living] + [self.largest, self.here]
        known = [room for room in rooms if room is not None]
        for task in tasks if known else ():
            wanted = needs_of(task, spec.sandbox, "")
            if not any(room.size.holds(room.demand(wanted)) for room in known):
                raise _too_large(task, wanted, [room.size for room in known])

    async def obstacle(self, job_id: int) -> str:
        """Why some queued trials of a job wait for a worker that is not there; empty if all have one."""
        wanted = await self.store.trials.queued_needs(job_id)
        living = await self.living() if wanted else []
        if wanted and not living:
            return "No worker is alive, so its trials wait."
        missing = {_missing(needs, living) for needs in wanted} - {""}
        if not missing:
            return ""
        some = "all of its queued trials" if len(missing) == len(wanted) else "some of its queued trials"
        return f"No worker that is alive can run {some}. They need {' and '.join(sorted(missing))}."

    async def living(self) -> list[WorkerRow]:
        rows = await self.store.workers.all(seen_since=self.clock() - self.heard_within)
        return [row for row in rows if not row.draining and not self.worker_is_dead(row.worker)]


def _missing(needs: Needs, living: Sequence[WorkerRow]) -> str:
    """What no worker has; empty if one has everything."""
    able = [worker for worker in living if not worker.abilities.missing(needs)]
    if not able:
        return living[0].abilities.missing(needs)
    rooms = [worker.packing for worker in able]
    if any(room is None or room.size.holds(room.demand(needs)) for room in rooms):
        return ""
    sizes = [room.size for room in rooms if room is not None]
    return f"{_demand(needs)}, and the largest worker has {_largest(sizes)}"


def _too_large(task: Task, wanted: Needs, sizes: Sequence[Size]) -> Unsupported:
    return Unsupported(
        f"Task {task.name} asks for {_demand(wanted)}; the largest worker has room for {_largest(sizes)}.",
        field="tasks",
        fix=(
            "Lower what the task declares, start a worker on a larger machine, or name the machine that will come "
            "(SEATRIAL_LARGEST_MACHINE). A worker with a fixed --concurrency takes every size."
        ),
    )


def _demand(needs: Needs) -> str:
    cpus = "" if needs.cpus is None else f"{needs.cpus:g} CPUs"
    memory = "" if needs.memory_mb is None else f"{needs.memory_mb / 1024:.3g} GB of memory"
    return " and ".join(filter(None, (cpus, memory)))


def _largest(sizes: Sequence[Size]) -> str:
    return str(max(sizes, key=lambda size: (size.memory_mb, size.cpus)))
