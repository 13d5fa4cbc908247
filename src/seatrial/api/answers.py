"""How errors are answered: a code, a sentence, what to do and, for input, the field. One table for the whole tree.

The native API answers ``{"error": {…}}``. The two compatibility contracts answer ``{"detail": …}``.
"""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from seatrial.domain.task import TaskProblem
from seatrial.errors import (
    Conflict,
    InvalidArchive,
    InvalidInput,
    InvalidTask,
    MissingKey,
    NotFound,
    SeatrialError,
    SetupProblem,
    StoreUnavailable,
    Unsupported,
)

log = logging.getLogger(__name__)
NATIVE = "/api/v1"

_KINDS: tuple[tuple[type[SeatrialError], int, str], ...] = (
    (InvalidTask, 422, "invalid_task"),
    (InvalidArchive, 400, "invalid_archive"),
    (MissingKey, 400, "missing_key"),
    (Unsupported, 422, "unsupported"),
    (InvalidInput, 422, "invalid_input"),
    (NotFound, 404, "not_found"),
    (Conflict, 409, "conflict"),
    (StoreUnavailable, 503, "unavailable"),
    (SetupProblem, 503, "setup_problem"),
    (SeatrialError, 500, "fault"),
)
"""The first that fits."""
_CODES = {
    400: "bad_request",
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    421: "wrong_host",
    422: "invalid_input",
    429: "too_many",
    503: "unavailable",
    507: "storage_full",
}


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


def status_of(error: SeatrialError) -> tuple[int, str]:
    return next((status, code) for kind, status, code in _KINDS if isinstance(error, kind))


def error_response(path: str, status: int, problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    """In the words of the contract that the path belongs to."""
    if path.startswith(NATIVE):
        content: dict[str, Any] = ErrorAnswer(error=problem).model_dump(mode="json")
    else:
        content = {"detail": f"{problem.message} {problem.fix}".strip()}
    return JSONResponse(content, status, headers)


def problem_of_status(status: int, message: str, fix: str = "") -> Problem:
    return Problem(code=_CODES.get(status, "error"), message=message, fix=fix)


def add_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(SeatrialError, _answer_ours)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(Exception, _answer_fault)


async def _answer_ours(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, SeatrialError)
    status, code = status_of(error)
    problem = Problem(
        code=code,
        message=error.message,
        fix=error.fix,
        field=getattr(error, "field", ""),
        problems=list(getattr(error, "problems", ())),
    )
    return error_response(request.url.path, status, problem)


async def _answer_invalid(request: Request, error: Exception) -> JSONResponse:
    """The first fault names the field, the sentence has all of them. What was sent is not repeated: it may be a key."""
    assert isinstance(error, RequestValidationError)
    faults = [(".".join(str(part) for part in fault["loc"][1:]) or "body", fault["msg"]) for fault in error.errors()]
    message = "; ".join(f"{field}: {reason}" for field, reason in faults)
    problem = Problem(code="invalid_input", message=message, field=faults[0][0] if faults else "")
    return error_response(request.url.path, 422, problem)


async def _answer_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    problem = problem_of_status(error.status_code, str(error.detail))
    return error_response(request.url.path, error.status_code, problem, dict(error.headers or {}))


async def _answer_fault(request: Request, error: Exception) -> JSONResponse:
    log.error("Unexpected fault at %s %s", request.method, request.url.path, exc_info=error)
    problem = Problem(code="fault", message="Something went wrong on our side; the server's log says what.")
    return error_response(request.url.path, 500, problem)
