"""What a request handler can reach. Made once, when the service starts; handed to handlers by FastAPI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from seatrial.domain.token import Role
from seatrial.wiring import Installation


@dataclass(frozen=True)
class Caller:
    """Who asks, as the guard found out."""

    name: str
    role: Role
    token_id: int | None = None


@dataclass(frozen=True)
class Service:
    """Everything behind the API."""

    installation: Installation


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _caller(request: Request) -> Caller:
    caller: Caller = request.scope["seatrial.caller"]
    return caller


def _given_keys(request: Request) -> dict[str, str]:
    keys: dict[str, str] = request.scope.get("seatrial.keys", {})
    return keys


ServiceDep = Annotated[Service, Depends(_service)]
CallerDep = Annotated[Caller, Depends(_caller)]
GivenKeys = Annotated[dict[str, str], Depends(_given_keys)]
"""Provider keys that came with the request, by environment name; taken out of the URL and the headers on the way in."""
