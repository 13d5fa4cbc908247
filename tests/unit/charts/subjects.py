"""Reports to draw, from letters: passed, failed, sandbox error, cancelled, . not ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from seatrial.charts.draw import Subject
from seatrial.domain.job import AgentSpec, Job, JobSpec
from seatrial.domain.reports.fact import TrialFact
from seatrial.domain.reports.pictures import Trend, TrendPoint
from seatrial.domain.reports.report import report
from seatrial.domain.reports.score import ScoreLine
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Outcome

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
_OUTCOMES = {
    "P": (Outcome.PASSED, None),
    "F": (Outcome.FAILED, None),
    "S": (Outcome.ERROR, Cause.SANDBOX),
    "C": (Outcome.CANCELLED, None),
    ".": (None, None),
}


def subject(
    stories: Mapping[str, Mapping[str, str]],
    *,
    cost: Mapping[str, float] | None = None,
    seconds: Sequence[float] = (10.0,),
    trend: Trend | None = None,
    name: str = "drawn",
) -> Subject:
    """``stories``: by configuration and task, one letter for each attempt."""
    tasks = dict.fromkeys(task for of in stories.values() for task in of)
    digests = {task: f"sha256:{number:064x}" for number, task in enumerate(tasks)}
    facts = [
        TrialFact(
            task=task,
            configuration=label,
            attempt=attempt,
            digest=digests[task],
            outcome=_OUTCOMES[letter][0],
            cause=_OUTCOMES[letter][1],
            seconds=seconds[attempt % len(seconds)] if letter in "PF" else None,
            input_tokens=100 * attempt if letter in "PF" else None,
            cost_usd=(cost or {}).get(label),
        )
        for label, of in stories.items()
        for task, letters in of.items()
        for attempt, letter in enumerate(letters, start=1)
    ]
    agents = {label: AgentSpec(name=label) for label in stories}
    spec = JobSpec(
        name=name,
        tasks=tuple(TaskRef(name=task, digest=digest) for task, digest in digests.items()),
        agents=tuple(agents.values()),
        attempts=max((len(letters) for of in stories.values() for letters in of.values()), default=1),
    )
    job = Job(id=7, spec=spec, created_at=NOON)
    return Subject(job, report(facts, spec=spec), trend or Trend(missing="No dataset."), agents)


def point(job: int, label: str, value: float | None, low: float | None = None, high: float | None = None) -> TrendPoint:
    score = ScoreLine(label=label, value=value, low=low, high=high, coverage=1.0, valid=1, ended=1, planned=1)
    return TrendPoint(job=job, name=f"job-{job}", created_at=NOON, score=score)
