"""Maps errors to HTTP answers: status, code, message, hint and, for invalid input, the field.

The native API answers ``{"error": {…}}``. The two compatible APIs answer ``{"detail": …}``.
"""

from __future__ import annotations

import errno
import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from seatrial.api.gates.headers import SECURITY_HEADERS
from seatrial.errors import (
    Conflict,
    InvalidArchive,
    InvalidInput,
    InvalidTask,
    MissingKey,
    NotFound,
    SeatrialError,
    SetupProblem,
    StorageFull,
    StoreUnavailable,
    Unsupported,
)
from seatrial.shapes.answers import ErrorAnswer, Problem

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
    (StorageFull, 507, "storage_full"),
    (StoreUnavailable, 503, "unavailable"),
    (SetupProblem, 503, "setup_problem"),
    (SeatrialError, 500, "fault"),
)
"""The first class that matches decides."""
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

_FULL = "The disk is full; nothing was saved."
_FULL_FIX = "Free some space, for example `seatrial gc`."
_FULL_WORDS = ("database or disk is full", "No space left on device", "os error 28")


def status_of(error: SeatrialError) -> tuple[int, str]:
    return next((status, code) for kind, status, code in _KINDS if isinstance(error, kind))


def error_response(path: str, status: int, problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    """The error in the format of the API that the path belongs to."""
    if path.startswith(NATIVE):
        content: dict[str, Any] = ErrorAnswer(error=problem).model_dump(mode="json")
    else:
        content = {"detail": f"{problem.message} {problem.fix}".strip()}
    return JSONResponse(content, status, headers)


def problem_of(error: SeatrialError) -> Problem:
    return Problem(
        code=status_of(error)[1],
        message=error.message,
        fix=error.fix,
        field=getattr(error, "field", ""),
        problems=list(getattr(error, "problems", ())),
    )


def problem_of_status(status: int, message: str, fix: str = "") -> Problem:
    return Problem(code=_CODES.get(status, "error"), message=message, fix=fix)


def add_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(SeatrialError, _answer_ours)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(OSError, _answer_fault)
    app.add_exception_handler(Exception, _answer_fault)


async def _answer_ours(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, SeatrialError)
    if is_disk_full(error) and not isinstance(error, StorageFull):
        return _disk_full(request, error)
    return error_response(request.url.path, status_of(error)[0], problem_of(error))


async def _answer_invalid(request: Request, error: Exception) -> JSONResponse:
    """``field`` names the first invalid field; the message lists all. The input is not echoed: it may contain a key."""
    assert isinstance(error, RequestValidationError)
    faults = [(".".join(str(part) for part in fault["loc"][1:]) or "body", fault["msg"]) for fault in error.errors()]
    message = "; ".join(f"{field}: {reason}" for field, reason in faults)
    problem = Problem(code="invalid_input", message=message, field=faults[0][0] if faults else "")
    return error_response(request.url.path, 422, problem)


async def _answer_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if is_disk_full(error):
        return _disk_full(request, error)
    problem = problem_of_status(error.status_code, str(error.detail))
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(sorted(_methods_at(request)))
    return error_response(request.url.path, error.status_code, problem, headers)


def _methods_at(request: Request) -> set[str]:
    """Methods of all routes at this path. The router reports only those of the first match."""
    found = [route for route in request.app.router.routes if route.matches(request.scope)[0] is not Match.NONE]
    return {method for route in found for method in getattr(route, "methods", None) or ()}


def is_disk_full(error: BaseException | None) -> bool:
    """Whether a full disk caused the error. Each layer words it differently, so the whole chain of causes is
    searched."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if any(words in str(error) for words in _FULL_WORDS):
            return True
        error = error.__cause__ or error.__context__
    return False


def as_storage_full(error: Exception) -> Exception:
    """``StorageFull`` if a full disk caused the error, otherwise the error itself."""
    return StorageFull(_FULL, fix=_FULL_FIX) if is_disk_full(error) and not isinstance(error, StorageFull) else error


def _disk_full(request: Request, error: Exception) -> JSONResponse:
    log.error("The disk is full: %s %s: %s", request.method, request.url.path, error)
    problem = problem_of_status(507, _FULL, _FULL_FIX)
    return error_response(request.url.path, 507, problem, SECURITY_HEADERS)


async def _answer_fault(request: Request, error: Exception) -> JSONResponse:
    if is_disk_full(error):
        return _disk_full(request, error)
    log.error("Unexpected error: %s %s", request.method, request.url.path, exc_info=error)
    problem = Problem(code="fault", message="Internal error; see the server's log.")
    return error_response(request.url.path, 500, problem, SECURITY_HEADERS)  # this answer bypasses the gates
