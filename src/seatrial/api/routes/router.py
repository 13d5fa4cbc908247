"""Routers with whole paths, and the application's one flat list of their routes.

FastAPI's ``include_router`` keeps routers inside routers and matches a path once on each level on the way down and once
more on the way to the handler: with sixty routes that was a sixth of what a small answer costs.
"""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from seatrial.api.answers import NATIVE
from seatrial.api.routes.shapes import errors


def native_router(path: str, tag: str, *statuses: int) -> APIRouter:
    """A part of the native API. ``statuses`` are errors that each of its routes may answer."""
    responses = errors(*statuses) if statuses else None
    return APIRouter(prefix=f"{NATIVE}{path}", tags=[tag], responses=responses, generate_unique_id_function=_operation)


def plain_router(tag: str) -> APIRouter:
    """Routes outside of the native API; their operations carry the tag in their name."""
    return APIRouter(tags=[tag], generate_unique_id_function=_operation)


def take_routes(app: FastAPI, routers: Iterable[APIRouter]) -> None:
    """In this order; the first route that fits a path answers it."""
    for router in routers:
        app.router.routes.extend(router.routes)


def _operation(route: APIRoute) -> str:
    """Clean verbs for the native API; others carry the name of their contract."""
    if route.path.startswith(NATIVE):
        return route.name
    return f"{str(route.tags[0]).lower().replace(' ', '_')}_{route.name}"
