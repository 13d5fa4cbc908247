"""The rules of entry: whom this installation asks for a token, and which role a method and a path need.

Pure, except that starting looks whether there is a token at all. The guard applies it.
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
"""Any other is refused, whoever asks."""
_GUARDED = ("api", "docs", "redoc", "openapi.json", "metrics")
"""First parts of paths that are not the web page."""
_SESSION = ["api", "v1", "session"]
_ADMIN = (["api", "v1", "tokens"], ["api", "v1", "keys"], ["api", "v1", "datasets", "import"])


class Access(StrEnum):
    LOOPBACK = "loopback"
    """Whoever can reach the loopback address of this machine; pages of other sites cannot."""
    TOKEN = "token"  # noqa: S105 - the name of a mode
    """Whoever shows a valid token."""
    OPEN = "open"
    """Whoever can reach it at all: the operator said so."""


def access_mode(settings: Settings, host: str | None = None) -> Access:
    """Where ``settings.auth`` is ``auto``, the address decides. ``host`` is the one that is listened on."""
    local = is_loopback(settings.host if host is None else host)
    if settings.auth == "token":
        return Access.TOKEN
    if local:
        return Access.LOOPBACK
    return Access.OPEN if settings.auth == "none" else Access.TOKEN


async def check_access(settings: Settings, tokens: TokenStore, now: datetime, host: str | None = None) -> Access:
    """To be asked before listening: refuses to open a server that nobody could enter, warns of one that all can."""
    mode = access_mode(settings, host)
    address = settings.host if host is None else host
    if mode is Access.OPEN:
        log.warning(
            "SEATRIAL_AUTH=none: EVERYBODY who can reach %s may run anything here, with this installation's keys.",
            address,
        )
    if mode is not Access.TOKEN and "*" in settings.cors_origins:
        log.warning("SEATRIAL_CORS_ORIGINS=* counts only where tokens are asked for; name the origins instead.")
    if mode is Access.TOKEN and not any(token.is_valid(now) for token in await tokens.tokens()):
        if not is_loopback(address):
            raise SetupProblem(
                f"Listening on {address or 'every address'} lets others in, and there is no token yet.",
                fix="Make one with `seatrial token create me --role admin`, or set SEATRIAL_AUTH=none to let "
                "everybody in on purpose.",
            )
        log.warning("There is no token yet: make one with `seatrial token create me --role admin`.")
    return mode


def is_loopback(host: str) -> bool:
    """Of an address as it is bound; a name other than ``localhost`` is taken for one that others can reach."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def needed_role(method: str, path: str) -> Role | None:
    """``None`` for what is open to all. A path is read as strictly as any router could read it."""
    parts = [part.lower() for part in path.split("/") if part not in ("", ".")]
    if parts == _SESSION and method != "PATCH" and method != "PUT":
        return None
    if any(parts[: len(start)] == start for start in _ADMIN):
        return Role.ADMIN
    if method not in SAFE_METHODS:
        return Role.USER
    is_page = ".." not in parts and (not parts or parts[0] not in _GUARDED)
    return None if is_page and method in ("GET", "HEAD") else Role.VIEWER
