"""Authentication and authorization. Every request passes here before it reaches a router.

A token arrives as ``Authorization: Bearer``, as Basic (user-info of a URL; either half), or as the page's session
cookie. A read-only link arrives as ``Bearer`` only; ``link_access`` says what it opens. Credentials that a browser adds
by itself (a cookie, Basic, or none where no token is required) count only for our own pages and for origins that the
operator listed.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from seatrial.api.answers import error_response, problem_of, problem_of_status, status_of
from seatrial.api.gates.access import METHODS, SAFE_METHODS, Access, access_mode, needed_role
from seatrial.api.gates.identity import Caller, Identities, TooManyFailures
from seatrial.api.gates.link_access import LinkAccess, is_link
from seatrial.api.gates.origins import Origins
from seatrial.domain.token import Role
from seatrial.errors import SeatrialError
from seatrial.settings import Settings

COOKIE = "seatrial_session"
_ANYBODY = Caller("anonymous", Role.ADMIN)


class _Shown(Enum):
    NOTHING = auto()
    BEARER = auto()
    BASIC = auto()
    SESSION = auto()


@dataclass(frozen=True)
class _Credential:
    shown: _Shown
    value: str = ""


class _Refused(Exception):
    def __init__(self, status: int, message: str, fix: str = "", headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.problem = problem_of_status(status, message, fix)
        self.headers = headers or {}
        super().__init__(message)


class Guard:
    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._access = access_mode(settings)
        self._origins = Origins(settings, self._access)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # none exists; a router that adds one must be allowed here first
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._check_place(scope, headers)
            if _is_preflight(scope, headers):
                await self._answer_preflight(headers)(scope, receive, send)
                return
            await self._admit(scope, headers)
        except _Refused as refusal:
            response = error_response(scope["path"], refusal.status, refusal.problem, refusal.headers)
            await response(scope, receive, send)
            return
        except SeatrialError as error:  # the store does not answer; the routers' error handlers are further in
            await error_response(scope["path"], status_of(error)[0], problem_of(error))(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check_place(self, scope: Scope, headers: Headers) -> None:
        if self._access is Access.LOOPBACK and not _arrived_on_loopback(scope):
            raise _Refused(403, "This server answers on its loopback address only.")
        if not self._origins.knows_host(headers):
            raise _Refused(
                421,
                "The Host header does not name this server.",
                "Use localhost or 127.0.0.1, or add the name to SEATRIAL_ALLOWED_HOSTS.",
            )

    def _answer_preflight(self, headers: Headers) -> Response:
        if not (self._origins.is_allowed(headers) or self._origins.is_own(headers)):
            raise _foreign()
        return Response(status_code=204, headers=self._origins.grant_ahead(headers))

    async def _admit(self, scope: Scope, headers: Headers) -> None:
        """Stores the caller in the scope, or refuses."""
        method: str = scope["method"]
        credential = _credential(headers)
        if credential.shown is _Shown.BEARER and is_link(credential.value):
            await self._admit_link(scope, headers, credential.value)
            return
        needed = needed_role(method, _route_path(scope))
        if self._access is not Access.TOKEN:
            self._check_method(method)
            if self._origins.is_foreign(method, headers):
                raise _foreign()
            scope["seatrial.caller"] = _ANYBODY
            return
        caller = await self._identify(scope, credential, needed)
        if caller is None and needed is not None:
            raise _Refused(
                401,
                "A valid token is required.",
                "Send Authorization: Bearer TOKEN; `seatrial token create` creates one.",
                {"WWW-Authenticate": 'Bearer realm="seatrial"'},
            )
        self._check_method(method)
        self._check_page(method, headers, credential.shown, needed)
        if caller is None:
            return
        if needed is not None and not caller.role.covers(needed):
            raise _Refused(403, f"This needs the role {needed}; the token {caller.name!r} has the role {caller.role}.")
        scope["seatrial.caller"] = caller

    async def _admit_link(self, scope: Scope, headers: Headers, secret: str) -> None:
        """The same in every mode: a request with a link gets what the link shows, and nothing else."""
        links: LinkAccess = scope["app"].state.service.links
        if self._origins.is_foreign(scope["method"], headers):
            raise _foreign()
        try:
            link = await links.find(secret, address_of(scope))
        except TooManyFailures as failures:
            raise _Refused(429, failures.message, failures.fix, failures.headers) from failures
        if link is None:
            raise _Refused(401, "This link has expired or was revoked.", "Ask for a new one.")
        reads = scope["method"] in ("GET", "HEAD")
        if not reads or not await links.opens(link, _route_path(scope), scope.get("query_string", b"")):
            shown = f"job {link.job_id}" if link.trial_id is None else f"trial {link.trial_id}"
            raise _Refused(403, f"This link shows {shown} and nothing else.")
        scope["seatrial.link"] = link
        scope["seatrial.caller"] = Caller(f"link {link.id}", Role.VIEWER)

    async def _identify(self, scope: Scope, credential: _Credential, needed: Role | None) -> Caller | None:
        identities: Identities = scope["app"].state.service.identities
        if credential.shown is _Shown.NOTHING:
            return None
        if credential.shown is _Shown.SESSION:
            return await identities.by_session(credential.value)
        try:
            return await identities.by_secret(credential.value, address_of(scope))
        except TooManyFailures as failures:
            if needed is None:
                return None
            raise _Refused(429, failures.message, failures.fix, failures.headers) from failures

    def _check_method(self, method: str) -> None:
        if method not in METHODS:
            raise _Refused(405, "This method is not supported.", headers={"Allow": ", ".join(sorted(METHODS))})

    def _check_page(self, method: str, headers: Headers, shown: _Shown, needed: Role | None) -> None:
        """Refuses requests of other sites' pages that rely on what the browser adds by itself."""
        if shown is _Shown.BEARER:
            return
        changes = method not in SAFE_METHODS
        if shown is _Shown.SESSION and changes and not self._origins.is_surely_own(headers):
            raise _foreign()
        if (needed is not None or changes) and self._origins.is_foreign(method, headers):
            raise _foreign()


def address_of(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "local"


def session_cookie(headers: Headers) -> str:
    return cookie_parser(headers.get("cookie", "")).get(COOKIE, "")


def _foreign() -> _Refused:
    return _Refused(
        403,
        "A page of another site sent this request.",
        "To trust its origin, add it to SEATRIAL_CORS_ORIGINS.",
    )


def _credential(headers: Headers) -> _Credential:
    """A header takes precedence over the cookie, even if it is wrong: a client that sends one means it."""
    given = headers.get("authorization")
    if given is None:
        cookie = session_cookie(headers)
        return _Credential(_Shown.SESSION, cookie) if cookie else _Credential(_Shown.NOTHING)
    scheme, _, value = given.partition(" ")
    if scheme.lower() == "basic":
        return _Credential(_Shown.BASIC, _from_basic(value.strip()))
    return _Credential(_Shown.BEARER, value.strip() if scheme.lower() == "bearer" else "")


def _from_basic(value: str) -> str:
    """The half that is a token. Clients put it before or after the colon."""
    try:
        name, _, word = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return next((half for half in (word, name) if half.startswith("st_")), "")


def _is_preflight(scope: Scope, headers: Headers) -> bool:
    return scope["method"] == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def _arrived_on_loopback(scope: Scope) -> bool:
    """Checks the address that the connection reached. A Unix socket or a test has none and is local."""
    server = scope.get("server")
    return server is None or _is_loopback(server[0])


@lru_cache(maxsize=64)
def _is_loopback(address: str) -> bool:
    """Cached: it is always one of this machine's few addresses."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return True


def _route_path(scope: Scope) -> str:
    """The path as routers see it, without the prefix of a proxy. Only whole segments count as prefix."""
    path, prefix = str(scope["path"]), str(scope.get("root_path", ""))
    return path.removeprefix(prefix) if path.startswith(f"{prefix}/") else path
