"""Access rules: when a token is required, and which role a method and a path need.

Pure functions, except that ``check_access`` looks whether a token exists. The guard applies them.
"""

from __future__ import annotations

import logging
from datetime import datetime
from enum import StrEnum
from ipaddress import ip_address

from seatrial.domain.token import Role
from seatrial.errors import SetupProblem
from seatrial.ports.store import TokenStore
from seatrial.settings import Settings

log = logging.getLogger(__name__)

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
METHODS = SAFE_METHODS | {"POST", "PUT", "PATCH", "DELETE"}
"""Every other method is refused."""
_GUARDED = ("api", "docs", "redoc", "openapi.json", "metrics")
"""First path segments that do not belong to the web page."""
_SESSION = ["api", "v1", "session"]
_ADMIN = (["api", "v1", "tokens"], ["api", "v1", "keys"], ["api", "v1", "datasets", "import"])


class Access(StrEnum):
    LOOPBACK = "loopback"
    """Anybody who can reach the loopback address of this machine, except pages of other sites."""
    TOKEN = "token"  # noqa: S105 - the name of a mode
    """Anybody with a valid token."""
    OPEN = "open"
    """Anybody who can reach the server. The operator chose this."""


def access_mode(settings: Settings) -> Access:
    """If ``settings.auth`` is ``auto``, the address that the server listens on decides."""
    if settings.auth == "token":
        return Access.TOKEN
    if is_loopback(settings.host):
        return Access.LOOPBACK
    return Access.OPEN if settings.auth == "none" else Access.TOKEN


async def check_access(settings: Settings, tokens: TokenStore, now: datetime) -> Access:
    """Called before listening. Refuses to start a server that no caller could use; warns if everybody can use it."""
    mode, address = access_mode(settings), settings.host
    if mode is Access.OPEN:
        log.warning(
            "SEATRIAL_AUTH=none: EVERYBODY who can reach %s may run anything here, with this installation's keys.",
            address,
        )
    if mode is not Access.TOKEN and "*" in settings.cors_origins:
        log.warning("SEATRIAL_CORS_ORIGINS=* has no effect unless tokens are required; list the origins instead.")
    if mode is Access.TOKEN and not any(token.is_valid(now) for token in await tokens.all()):
        if not is_loopback(address):
            raise SetupProblem(
                f"Listening on {address or 'every address'} is open to others, and there is no token yet.",
                fix=(
                    "Create one with `seatrial token create me --role admin`, or set SEATRIAL_AUTH=none to let "
                    "everybody in on purpose."
                ),
            )
        log.warning("There is no token yet. Create one with `seatrial token create me --role admin`.")
    return mode


def is_loopback(host: str) -> bool:
    """For a bound address. A name other than ``localhost`` counts as reachable by others."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def needed_role(method: str, path: str) -> Role | None:
    """``None`` for public paths. The path is read as strictly as any router could read it."""
    parts = [part.lower() for part in path.split("/") if part not in ("", ".")]
    if parts == _SESSION and method != "PATCH" and method != "PUT":
        return None
    if any(parts[: len(start)] == start for start in _ADMIN):
        return Role.ADMIN
    if method not in SAFE_METHODS:
        return Role.USER
    is_page = ".." not in parts and (not parts or parts[0] not in _GUARDED)
    return None if is_page and method in ("GET", "HEAD") else Role.VIEWER
