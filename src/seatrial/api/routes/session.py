"""Sign-in from the page: the token is sent once and replaced by a session cookie."""

from __future__ import annotations

from typing import Literal

from fastapi import Request, Response
from starlette.exceptions import HTTPException

from seatrial.api.context import Caller, Service, ServiceDep
from seatrial.api.gates.access import Access
from seatrial.api.gates.guard import COOKIE, address_of, session_cookie
from seatrial.api.gates.identity import SESSION_LIFE, TooManyFailures
from seatrial.api.routes.router import native_router
from seatrial.shapes.access import Login, SessionState
from seatrial.shapes.answers import ErrorAnswer

router = native_router("/session", "access", 400, 404)


@router.post("", responses={401: {"model": ErrorAnswer}, 429: {"model": ErrorAnswer}})
async def sign_in(login: Login, request: Request, response: Response, service: ServiceDep) -> SessionState:
    """Sets the session cookie. If this installation requires no tokens, any token is accepted."""
    if service.access is not Access.TOKEN:
        return _state(request, service)
    try:
        caller = await service.identities.by_secret(login.token, address_of(request.scope))
    except TooManyFailures as failures:
        raise HTTPException(429, f"{failures.message} {failures.fix}", failures.headers) from failures
    if caller is None:
        raise HTTPException(401, "The token is not valid.")
    response.set_cookie(
        COOKIE,
        service.identities.open_session(login.token),
        max_age=int(SESSION_LIFE.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=_by_https(request),
    )
    return SessionState(name=caller.name, role=caller.role, auth="token")


@router.get("")
async def who_am_i(request: Request, service: ServiceDep) -> SessionState:
    """The caller, and whether this installation requires tokens."""
    return _state(request, service)


@router.delete("", status_code=204)
async def sign_out(request: Request, response: Response, service: ServiceDep) -> None:
    """Ends the session, even for copies of the cookie."""
    cookie = session_cookie(request.headers)
    if cookie:
        service.identities.end_session(cookie)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=_by_https(request))


def _state(request: Request, service: Service) -> SessionState:
    caller: Caller | None = request.scope.get("seatrial.caller")
    auth: Literal["token", "none"] = "token" if service.access is Access.TOKEN else "none"
    return SessionState(name=caller and caller.name, role=caller and caller.role, auth=auth)


def _by_https(request: Request) -> bool:
    """Behind a proxy that ends TLS only the browser knows the scheme: it sends it in the Origin header."""
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")
