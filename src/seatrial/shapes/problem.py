"""Error answers: a code, a message, a hint and, for input, the field."""

from __future__ import annotations

from pydantic import BaseModel

from seatrial.domain.task import TaskProblem


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
