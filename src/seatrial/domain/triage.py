"""What people add to trials and jobs while they look through them: notes, tags, labels, a reviewed mark, saved views.

Nothing here changes a result, a score or a count. Everything is stored with its author and time.
"""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum

from seatrial.domain.frozen import Frozen
from seatrial.errors import InvalidInput

LONGEST_NOTE = 10_000
LONGEST_WORD = 60
LONGEST_VALUE = 200
LONGEST_TITLE = 400
LONGEST_QUERY = 2_000
MOST_NOTES = 200
"""Of one trial."""
MOST_MARKS = 100
"""Tags and labels of one trial."""
MOST_VIEWS = 500
_NOT_IN_NOTES = re.compile(r"[^\S \n\t]|[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")


class MarkKind(StrEnum):
    TAG = "tag"
    LABEL = "label"
    """A name with a value."""
    REVIEWED = "reviewed"


class TriageMark(Frozen):
    """A tag, a label or the reviewed mark of a trial. A trial has one of each kind and name."""

    trial_id: int
    kind: MarkKind
    name: str = ""
    value: str = ""
    author: str
    at: datetime


class Note(Frozen):
    id: int
    trial_id: int
    text: str
    author: str
    at: datetime


class Triage(Frozen):
    """Everything that was added to one trial."""

    trial_id: int
    marks: tuple[TriageMark, ...] = ()
    """By kind and name."""
    notes: tuple[Note, ...] = ()
    """First to last."""

    def of(self, kind: MarkKind) -> tuple[TriageMark, ...]:
        return tuple(mark for mark in self.marks if mark.kind is kind)


class TriageLine(Frozen):
    """What was added to a trial, in short. For lists."""

    trial_id: int
    tags: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    reviewed: bool = False
    notes: int = 0
    """How many."""


class Neighbours(Frozen):
    """The place of a trial in its job, in planned order."""

    previous: int | None
    next: int | None
    place: int
    """1 for the first trial."""
    total: int


class ViewPage(StrEnum):
    """The lists that a view can be saved of."""

    JOBS = "jobs"
    TRIALS = "trials"


class SavedView(Frozen):
    """Filters and order of a list under a name, for everybody who uses the installation."""

    id: int
    page: ViewPage
    name: str
    query: str
    """As in the page's address: ``outcome=failed&sort=trials.cost.down``."""
    author: str
    at: datetime


def checked_word(text: str, field: str) -> str:
    """The name of a tag or a label. Commas separate tags, ``=`` ends the name of a label, and it is one part of an
    address."""
    word = text.strip()
    unfit = set(word) & set(",=/\\") or word.startswith(".")
    if not word or len(word) > LONGEST_WORD or not word.isprintable() or unfit:
        raise InvalidInput(
            f"{text[:80]!r} cannot be a {field}.",
            field=field,
            fix=f"Use 1 to {LONGEST_WORD} printable characters without , = / and no dot in front.",
        )
    return word


def checked_line(text: str, field: str, longest: int) -> str:
    """One line of printable text."""
    line = text.strip()
    if not line or len(line) > longest or not line.isprintable():
        raise InvalidInput(
            f"The {field} must be one line of 1 to {longest} printable characters.", field=field, fix="Shorten it."
        )
    return line


def checked_note(text: str) -> str:
    """Lines of text. Control characters are replaced by spaces."""
    note = _NOT_IN_NOTES.sub(" ", text.replace("\r\n", "\n")).strip()
    if not note or len(note) > LONGEST_NOTE:
        raise InvalidInput(f"A note has 1 to {LONGEST_NOTE} characters.", field="text", fix="Split it.")
    return note


def checked_query(query: str) -> str:
    """The query of an address: printable ASCII without a fragment. The page reads parameters from it, nothing else."""
    text = query.removeprefix("?")
    if len(text) > LONGEST_QUERY or not re.fullmatch(r"[!-~]*", text) or "#" in text:
        raise InvalidInput("This is not the query of an address.", field="query", fix="Copy what follows the `?`.")
    return text
