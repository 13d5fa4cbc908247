"""Routers with full paths, one flat list of their routes, and the errors that routes document.

FastAPI's ``include_router`` nests routers and matches a path on every level, twice. With sixty routes that took a sixth
of the time of a small answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel

from seatrial.api.answers import NATIVE
from seatrial.ports.store import TrialSummary
from seatrial.shapes.answers import ErrorAnswer
from seatrial.shapes.trials import TrialItem, TrialPage

_ERRORS = {
    400: "The request cannot be parsed.",
    401: "A token is required.",
    403: "The token's role does not allow this.",
    404: "Not found.",
    405: "This address does not support the method.",
    408: "The request was sent too slowly.",
    409: "The current state does not allow this.",
    413: "The request is too large.",
    415: "The content type is not supported.",
    416: "The range lies outside of the file.",
    421: "The Host header does not name this server.",
    422: "The input is invalid; `field` names the field.",
    429: "Too many requests, or too many wrong keys; wait and try again.",
    503: "The service cannot do this now; try again.",
    507: "The disk is full.",
}
_ALWAYS = (401, 403, 408, 413, 421, 422, 429, 503)


def native_router(path: str, tag: str, *statuses: int) -> APIRouter:
    """Part of the native API. ``statuses`` are errors that each of its routes may answer."""
    responses = errors(*statuses) if statuses else None
    return APIRouter(prefix=f"{NATIVE}{path}", tags=[tag], responses=responses, generate_unique_id_function=_operation)


def plain_router(tag: str) -> APIRouter:
    """Routes outside of the native API. The tag becomes part of their operation ids."""
    return APIRouter(tags=[tag], generate_unique_id_function=_operation)


def take_routes(app: FastAPI, routers: Iterable[APIRouter]) -> None:
    """In this order; the first route that matches a path answers it."""
    for router in routers:
        app.router.routes.extend(router.routes)


def _operation(route: APIRoute) -> str:
    """Plain verbs for the native API; other APIs add their name."""
    if route.path.startswith(NATIVE):
        return route.name
    return f"{str(route.tags[0]).lower().replace(' ', '_')}_{route.name}"


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Documented errors of a route, in addition to those of every route."""
    return {status: refers_to(ErrorAnswer, _ERRORS[status]) for status in sorted({*_ALWAYS, *statuses})}


def sends(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """Documents the content types of an answer that is not JSON."""
    return {200: {"content": {kind: {} for kind in kinds}}}


def refers_to(model: type[BaseModel], description: str) -> dict[str, Any]:
    """References a response model by name; some route must define it. FastAPI would create a validator per answer of
    each route, a thousand in all, and slow down the start of the service."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def trial_page(summaries: list[TrialSummary], limit: int) -> TrialPage:
    shown = summaries[:limit]
    more = len(summaries) > limit
    return TrialPage(items=[TrialItem.of(each) for each in shown], next=str(shown[-1].trial.id) if more else None)
