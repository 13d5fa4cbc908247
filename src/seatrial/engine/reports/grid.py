"""A job as a grid of tasks × configurations, and as CSV. Reads summaries page by page, without results."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncIterator

from seatrial.domain.frozen import Frozen
from seatrial.domain.job import Job
from seatrial.domain.suffered import Suffered
from seatrial.domain.trial import Mark, Outcome, TrialState
from seatrial.engine.reports.reporting import configuration_labels, task_names
from seatrial.engine.reports.summaries import summaries_of
from seatrial.ports.store import TrialStore, TrialSummary

_ROWS_A_PIECE = 1000
_FORMULA = re.compile(r"[\t\r\n]|[\s\x00\ufeff\u200b]*[=+\-@|%＝＋－＠]")
COLUMNS = (
    "trial",
    "task",
    "digest",
    "agent",
    "model",
    "configuration",
    "repeat",
    "state",
    "outcome",
    "cause",
    "reward",
    "marks",
    "attempt",
    "seconds",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "created_at",
    "started_at",
    "ended_at",
    "reruns",
    "spent_seconds",
    "spent_input_tokens",
    "spent_cached_tokens",
    "spent_output_tokens",
    "spent_cost_usd",
    *Suffered.model_fields,
)
"""``reruns``: the planned trial that an added attempt runs again; such a line is not part of the score. ``spent_…``:
over all tries. What the last try suffered is at the end. ``repeat`` is the attempt and ``attempt`` the try."""


class GridCell(Frozen):
    """One trial."""

    trial: int
    repeat: int
    state: TrialState
    outcome: Outcome | None
    reward: float | None = None
    marks: tuple[Mark, ...] = ()


class GridRow(Frozen):
    name: str
    digest: str
    cells: tuple[tuple[GridCell, ...], ...]
    """For each configuration, in their order, its planned trials of this task by attempt."""
    added: tuple[tuple[GridCell, ...], ...] = ()
    """The same for attempts that were added after the plan; empty if the task has none."""


class Grid(Frozen):
    configurations: tuple[str, ...]
    tasks: tuple[GridRow, ...]


async def grid_of(trials: TrialStore, job: Job) -> Grid:
    labels, names = configuration_labels(job.spec.agents), task_names(job.spec.tasks)
    cells: dict[str, list[list[GridCell]]] = {digest: [[] for _ in labels] for digest in names}
    added: dict[str, list[list[GridCell]]] = {}
    async for summary in summaries_of(trials, job.id):
        trial = summary.trial
        cell = GridCell(
            trial=trial.id,
            repeat=trial.attempt,
            state=trial.state,
            outcome=trial.outcome,
            reward=summary.reward if trial.state is TrialState.ENDED else None,
            marks=summary.marks if trial.state is TrialState.ENDED else (),
        )
        digest = trial.task.digest
        where = added.setdefault(digest, [[] for _ in labels]) if trial.added else cells[digest]
        where[trial.agent_index].append(cell)
    rows = [
        GridRow(name=names[digest], digest=digest, cells=_in_order(found), added=_in_order(added.get(digest, [])))
        for digest, found in cells.items()
    ]
    return Grid(configurations=labels, tasks=tuple(sorted(rows, key=lambda row: (row.name, row.digest))))


async def table_of(trials: TrialStore, job: Job) -> AsyncIterator[str]:
    """CSV in pieces, newest trial first."""
    labels = configuration_labels(job.spec.agents)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    written = 0
    async for summary in summaries_of(trials, job.id):
        writer.writerow([_harmless(value) for value in _row(summary, labels)])
        written += 1
        if written % _ROWS_A_PIECE == 0:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def _in_order(columns: list[list[GridCell]]) -> tuple[tuple[GridCell, ...], ...]:
    return tuple(tuple(sorted(cells, key=lambda cell: cell.repeat)) for cells in columns)


def _row(summary: TrialSummary, labels: tuple[str, ...]) -> tuple[object, ...]:
    trial, spent = summary.trial, summary.spent
    return (
        trial.id,
        trial.task.name,
        trial.task.digest,
        trial.agent,
        trial.model or "",
        labels[trial.agent_index],
        trial.attempt,
        trial.state,
        trial.outcome or "",
        trial.cause or "",
        summary.reward,
        " ".join(summary.marks),
        trial.try_number,
        summary.seconds,
        summary.input_tokens,
        summary.output_tokens,
        summary.cost_usd,
        *(moment.isoformat() if moment else "" for moment in (trial.created_at, trial.started_at, trial.ended_at)),
        trial.reruns,
        spent.seconds,
        spent.input_tokens,
        spent.cached_tokens,
        spent.output_tokens,
        spent.cost_usd,
        *(value for _, value in summary.suffered),
    )


def _harmless(value: object) -> object:
    """Escapes a text that a spreadsheet would run as a formula. Names come from untrusted tasks and agents."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
