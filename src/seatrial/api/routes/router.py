"""Routers with full paths, and one flat list of their routes.

FastAPI's ``include_router`` nests routers and matches a path on every level, twice. With sixty routes that took a sixth
of the time of a small answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from seatrial.api.answers import NATIVE
from seatrial.api.routes.shapes import errors


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
