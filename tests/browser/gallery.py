"""Jobs to look at in pictures and on the leaderboard: the golden set, two jobs of one dataset, and hostile names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.result import Result, Usage
from seatrial.domain.task import Dataset, TaskRef
from seatrial.domain.trial import Outcome
from seatrial.ports.store import Store
from tests.browser.payloads import MARKUP
from tests.golden.trials import record

_BEGAN = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
_REFS = tuple(TaskRef(name=f"ranked-{number}", digest=f"sha256:{7000 + number:064x}") for number in range(3))
LEADER = AgentSpec(name="leader", model="maker/large")
CHASER = AgentSpec(name="chaser", model="maker/small")


@dataclass(frozen=True)
class Gallery:
    golden: int
    """The job of ``tests/golden``."""
    earlier: int
    """An eligible job of the dataset ``ranked@1`` with two configurations."""
    later: int
    """A second one, in which only the first configuration ran."""
    hostile: int
    """Every name in it is an attack."""


async def fill_gallery(store: Store) -> Gallery:
    golden = await record(store)
    await store.tasks.save_dataset(Dataset(name="ranked", version="1", tasks=_REFS), _BEGAN)
    ranked = JobSpec(name="ranked, first", tasks=_REFS, agents=(LEADER, CHASER), attempts=5, dataset="ranked@1")
    earlier = await _run(store, ranked, {"leader": 3, "chaser": 2})
    later = await _run(store, ranked.model_copy(update={"name": "ranked, again", "agents": (LEADER,)}), {"leader": 4})
    names = tuple(TaskRef(name=text, digest=f"sha256:{8000 + at:064x}") for at, text in enumerate(MARKUP[:6]))
    agents = (
        AgentSpec(name=MARKUP[0], model=MARKUP[24]),
        AgentSpec(name="</svg><script>window.__xss=1</script>" * 250),
    )
    hostile = await _run(
        store, JobSpec(name="pictures of strangers", tasks=names, agents=agents, dataset=MARKUP[1]), {}
    )
    return Gallery(golden.id, earlier.id, later.id, hostile.id)


async def _run(store: Store, spec: JobSpec, passes: dict[str, int]) -> Job:
    """``passes``: of the attempts at each task, by agent; one less at each further task."""
    job = await store.jobs.create(spec, tuple(plan(spec)), _BEGAN)
    order = {ref.digest: number for number, ref in enumerate(spec.tasks)}
    for trial in await store.trials.claim("gallery", timedelta(minutes=1), 1000, _BEGAN, job_id=job.id):
        passed = trial.attempt <= passes.get(trial.agent, 1) - order[trial.task.digest]
        result = Result(
            outcome=Outcome.PASSED if passed else Outcome.FAILED,
            rewards={"reward": float(passed)},
            usage=Usage(
                input_tokens=1000 * trial.attempt, output_tokens=50, cost_usd=0.2 if trial.agent == "leader" else 0.05
            ),
            seconds=10.0 * trial.attempt,
        )
        await store.trials.finish(trial.id, trial.try_number, result, _BEGAN + timedelta(seconds=60))
    return await store.jobs.get(job.id)
