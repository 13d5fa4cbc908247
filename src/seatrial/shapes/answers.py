"""What all answers share: the base class, one page of a list, and errors."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, StringConstraints

from seatrial.domain.described import Described
from seatrial.domain.task import TaskProblem

Plain = Annotated[str, StringConstraints(max_length=400, pattern=r"^[^\x00]*$")]
"""Text that every database can search for."""


class Listing[Item](BaseModel):
    """One page of a list, newest first unless documented otherwise."""

    items: list[Item]
    next: str | None = None
    """Cursor of the next page; `null` on the last one."""


class Shape(Described):
    """An answer of the native API."""


class Problem(BaseModel):
    """An error, for programs and people."""

    code: str
    message: str
    fix: str = ""
    field: str = ""
    problems: list[TaskProblem] = []


class ErrorAnswer(BaseModel):
    """The body of every error of the native API."""

    error: Problem
