"""Converts HTTP errors to Seatrial errors, with the service's message. Used by both drivers."""

from __future__ import annotations

import httpx
from pydantic import ValidationError

from seatrial.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    InvalidTask,
    MissingKey,
    NotFound,
    SeatrialError,
    ServiceUnavailable,
    StorageFull,
    StoreUnavailable,
    Unauthenticated,
    Unsupported,
)
from seatrial.shapes.answers import ErrorAnswer, Problem

_INPUT: dict[str, type[InvalidInput]] = {"missing_key": MissingKey, "unsupported": Unsupported}
_STATUS: dict[int, type[SeatrialError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    408: ServiceUnavailable,
    409: Conflict,
    429: ServiceUnavailable,
    502: ServiceUnavailable,
    503: StoreUnavailable,
    504: ServiceUnavailable,
    507: StorageFull,
}


def refusal(answer: httpx.Response) -> SeatrialError:
    """The error for an answer whose content has been read."""
    problem = _problem(answer)
    kind = _STATUS.get(answer.status_code)
    if kind is not None:
        return kind(problem.message, fix=problem.fix or _fix(answer))
    if not 400 <= answer.status_code < 500:
        return SeatrialError(problem.message, fix=problem.fix)
    if problem.problems:
        return InvalidTask("", tuple(problem.problems), message=problem.message)
    return _INPUT.get(problem.code, InvalidInput)(problem.message, field=problem.field, fix=problem.fix)


def unreachable(url: httpx.URL, error: httpx.TransportError) -> ServiceUnavailable:
    where = f"{url.scheme}://{url.netloc.decode()}"
    slow = isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout)
    reason = "did not answer in time" if slow else "cannot be reached"
    return ServiceUnavailable(
        f"The service at {where} {reason}.", fix="Check the address, and that `seatrial up` runs."
    )


def _problem(answer: httpx.Response) -> Problem:
    """Parses the error; a proxy may answer in another format."""
    try:
        return ErrorAnswer.model_validate_json(answer.content).error
    except ValidationError:
        where = f"{answer.request.method} {answer.request.url.copy_with(query=None)}"
        return Problem(code="", message=f"{where} answered {answer.status_code} {answer.reason_phrase}.")


def _fix(answer: httpx.Response) -> str:
    if answer.status_code == 401:
        return "Give a token: Client(url, token=…) or SEATRIAL_SERVER_TOKEN."
    if wait := answer.headers.get("retry-after"):
        return f"Try again in {wait} s."
    return ""
