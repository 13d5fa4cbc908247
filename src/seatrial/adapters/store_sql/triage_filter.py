"""The filters of trial listings by what people added: tags, labels, the reviewed mark and notes."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from seatrial.adapters.store_sql.tables import trial_marks, trial_notes, trials
from seatrial.domain.triage import MarkKind
from seatrial.ports.store import TrialFilter


def narrow_triage(query: sa.Select[Any], chosen: TrialFilter) -> sa.Select[Any]:
    if chosen.tag is not None:
        query = query.where(_has_mark(MarkKind.TAG, trial_marks.c.name == chosen.tag))
    if chosen.label is not None:
        name, given, value = chosen.label.partition("=")
        which = sa.and_(trial_marks.c.name == name, trial_marks.c.value == value if given else sa.true())
        query = query.where(_has_mark(MarkKind.LABEL, which))
    if chosen.reviewed is not None:
        is_reviewed = _has_mark(MarkKind.REVIEWED, sa.true())
        query = query.where(is_reviewed if chosen.reviewed else ~is_reviewed)
    if chosen.noted is not None:
        has_note = sa.exists().where(trial_notes.c.trial_id == trials.c.id)
        query = query.where(has_note if chosen.noted else ~has_note)
    return query


def _has_mark(kind: MarkKind, which: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    return sa.exists().where(trial_marks.c.trial_id == trials.c.id, trial_marks.c.kind == kind.value, which)
