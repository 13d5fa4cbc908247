"""Shapes that several routers answer with, and how routes tell the errors that they may answer."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from seatrial.ports.store import TrialSummary
from seatrial.shapes.problem import ErrorAnswer
from seatrial.shapes.trials import TrialItem, TrialPage

_ERRORS = {
    400: "What was sent cannot be read.",
    401: "A token is needed.",
    403: "The token's role does not allow this.",
    404: "There is no such thing.",
    405: "This address does not know the method.",
    408: "The request came too slowly.",
    409: "The current state does not allow this.",
    413: "More was sent than is taken in.",
    415: "This kind of body is not understood.",
    416: "The range lies outside of the file.",
    421: "The server is not known by this host name.",
    422: "Something about the input is wrong; `field` says what.",
    429: "Too many attempts; wait a little.",
    503: "The service cannot do this at the moment; try again.",
    507: "The disk is full.",
}
_ALWAYS = (401, 403, 408, 413, 421, 422, 429, 503)


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Documented answers of a route, besides those that every route may give."""
    return {status: refers_to(ErrorAnswer, _ERRORS[status]) for status in sorted({*_ALWAYS, *statuses})}


def refers_to(model: type[BaseModel], description: str) -> dict[str, Any]:
    """An answer by the name of its model, which some route has to bring. FastAPI would make a validator for each answer
    of each route, a thousand in all, and the service would start later for it."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def trial_page(summaries: list[TrialSummary], limit: int) -> TrialPage:
    shown = summaries[:limit]
    more = len(summaries) > limit
    return TrialPage(items=[TrialItem.of(each) for each in shown], next=str(shown[-1].trial.id) if more else None)
