"""Sessions, tokens and provider keys.

The page sends a token once and gets a session cookie. Admins create, list and revoke tokens; only the answer that
creates a token contains its secret. Admins set and delete provider keys; nobody can read one back.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import Path, Request, Response
from starlette.exceptions import HTTPException

from seatrial.api.context import Caller, Service, ServiceDep
from seatrial.api.gates.access import Access
from seatrial.api.gates.guard import COOKIE, address_of, session_cookie
from seatrial.api.gates.identity import SESSION_LIFE, TooManyFailures
from seatrial.api.routes.router import native_router
from seatrial.domain.numbers import LARGEST_ID
from seatrial.domain.token import NewToken, Token, fingerprint, fresh_secret, lifetime
from seatrial.shapes.access import (
    KeyItem,
    KeyPage,
    KeyValue,
    Login,
    SessionState,
    TokenItem,
    TokenMade,
    TokenPage,
    TokenRequest,
)
from seatrial.shapes.answers import ErrorAnswer

router = native_router("", "access", 400, 404)
TokenId = Annotated[int, Path(ge=1, le=LARGEST_ID)]
KeyName = Annotated[str, Path(max_length=64, description="The environment variable, such as OPENROUTER_API_KEY.")]


@router.post("/session", responses={401: {"model": ErrorAnswer}, 429: {"model": ErrorAnswer}})
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


@router.get("/session")
async def who_am_i(request: Request, service: ServiceDep) -> SessionState:
    """The caller, and whether this installation requires tokens."""
    return _state(request, service)


@router.delete("/session", status_code=204)
async def sign_out(request: Request, response: Response, service: ServiceDep) -> None:
    """Ends the session, even for copies of the cookie."""
    cookie = session_cookie(request.headers)
    if cookie:
        service.identities.end_session(cookie)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", secure=_by_https(request))


@router.get("/tokens")
async def list_tokens(service: ServiceDep) -> TokenPage:
    """All tokens, newest first, including revoked ones."""
    now = service.installation.clock()
    return TokenPage(items=[_item(token, now) for token in await service.installation.store.tokens.all()])


@router.post("/tokens", status_code=201)
async def make_token(asked: TokenRequest, service: ServiceDep) -> TokenMade:
    """Creates a token. Only this answer contains its secret."""
    now = service.installation.clock()
    life = lifetime(asked.expires)
    secret = fresh_secret()
    new = NewToken(
        name=asked.name,
        role=asked.role,
        fingerprint=fingerprint(secret),
        expires_at=now + life if life is not None else None,
    )
    token = await service.installation.store.tokens.save(new, now)
    return TokenMade(**_item(token, now).model_dump(), secret=secret)


@router.delete("/tokens/{token_id}", status_code=204)
async def revoke_token(token_id: TokenId, service: ServiceDep) -> None:
    """Revokes a token. It and all sessions opened with it are refused from now on."""
    await service.installation.store.tokens.revoke(token_id, service.installation.clock())


@router.get("/keys")
async def list_keys(service: ServiceDep) -> KeyPage:
    """Lists names only. Keys from the server's environment are not included: they are not stored."""
    kept = await service.installation.store.provider_keys.all()
    return KeyPage(items=[KeyItem(name=key.name, set_at=key.set_at) for key in kept])


@router.put("/keys/{name}", status_code=204)
async def set_key(name: KeyName, given: KeyValue, service: ServiceDep) -> None:
    """Stores a key, encrypted. Replaces an earlier one."""
    installation = service.installation
    await installation.keys.save(name, given.value.get_secret_value(), installation.clock())


@router.delete("/keys/{name}", status_code=204)
async def delete_key(name: KeyName, service: ServiceDep) -> None:
    """Deletes a key."""
    await service.installation.store.provider_keys.delete(name)


def _state(request: Request, service: Service) -> SessionState:
    caller: Caller | None = request.scope.get("seatrial.caller")
    auth: Literal["token", "none"] = "token" if service.access is Access.TOKEN else "none"
    return SessionState(name=caller and caller.name, role=caller and caller.role, auth=auth)


def _by_https(request: Request) -> bool:
    """Behind a proxy that ends TLS only the browser knows the scheme: it sends it in the Origin header."""
    return request.url.scheme == "https" or request.headers.get("origin", "").startswith("https://")


def _item(token: Token, now: datetime) -> TokenItem:
    return TokenItem(**token.model_dump(exclude={"fingerprint"}), valid=token.is_valid(now))
