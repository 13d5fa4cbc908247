"""How an error is told: a code, a sentence, what to do and, for input, the field."""

from __future__ import annotations

from pydantic import BaseModel

from seatrial.domain.task import TaskProblem


class Problem(BaseModel):
    """What went wrong, for programs and for people."""

    code: str
    message: str
    fix: str = ""
    field: str = ""
    problems: list[TaskProblem] = []


class ErrorAnswer(BaseModel):
    """The body of every error of the native API."""

    error: Problem
