"""Lists of jobs and of a job's trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.cli.backend.backend import JobRow
from seatrial.cli.view.columns import Column
from seatrial.cli.view.figures import NOTHING, dollars, estimate, percent
from seatrial.cli.view.progress import duration
from seatrial.domain.reports.score import ScoreLine
from seatrial.ports.store import TrialRow

JOBS = (
    Column("job", right=True),
    Column("status"),
    Column("trials", right=True),
    Column("score", right=True),
    Column("coverage", right=True, rank=1),
    Column("leaderboard", right=True, rank=5),
    Column("errors", right=True, rank=2),
    Column("agent / model", least=18),
    Column("name", least=10, rank=3),
    Column("created", rank=4),
)
TRIALS = (
    Column("trial", right=True),
    Column("outcome"),
    Column("task", least=16),
    Column("attempt", right=True),
    Column("agent / model", least=16),
    Column("time", right=True, rank=2),
    Column("cost", right=True, rank=3),
    Column("message", least=16, prose=True, rank=1),
)


def job_cells(job: JobRow) -> Iterator[tuple[str, ...]]:
    """A row for each configuration of the job; only the first one names the job."""
    counts = job.counts
    named = "" if job.name == f"job-{job.id}" else job.name
    trials = f"{counts.ended}/{counts.total}" + (f" +{counts.added.total}" if counts.added.total else "")
    head = (str(job.id), job.status, trials)
    tail = (named, f"{job.created_at:%Y-%m-%d %H:%M}")
    for position, line in enumerate(job.scores or (ScoreLine(),)):
        first = position == 0
        yield (
            *(head if first else ("", "", "")),
            *_score_cells(line),
            (str(counts.error) if counts.error and first else ""),
            line.label,
            *(tail if first else ("", "")),
        )


def _score_cells(line: ScoreLine) -> tuple[str, str, str]:
    """Score, coverage, leaderboard. The last two are empty if they say nothing new."""
    if line.value is None:
        return ("not scored" if line.planned else NOTHING, "", "")
    covered = percent(line.coverage) if line.coverage is not None and line.coverage < 1 else ""
    lead = percent(line.leaderboard) if line.leaderboard not in (None, line.value) else ""
    return estimate(line.value, line.low, line.high), covered, lead


def trial_cells(rows: Sequence[TrialRow]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        trial, result = row.trial, row.result
        yield (
            str(trial.id),
            str(trial.outcome or trial.phase or trial.state),
            trial.task.name,
            f"{trial.attempt} added" if trial.added else str(trial.attempt),
            f"{trial.agent} / {trial.model}" if trial.model else trial.agent,
            duration(result.seconds) if result is not None and result.seconds else "",
            dollars(result.usage.cost_usd) if result is not None and result.usage.cost_usd is not None else "",
            (result.message if result is not None else "") or "",
        )
