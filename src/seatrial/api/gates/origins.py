"""Checks of the Host and Origin headers.

A page of another site can make a browser call a service on the user's machine: with a form, with a script, or with a
host name of its own that resolves to 127.0.0.1 (DNS rebinding). The guard calls this; it knows nothing about tokens.
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers

from seatrial.api.gates.access import SAFE_METHODS, Access
from seatrial.settings import Settings

_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?", re.IGNORECASE)
_ORIGIN = re.compile(rf"(https?)://({_HOST.pattern})", re.IGNORECASE)
"""As browsers write it: nothing before the name, nothing behind the port."""
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
_ASKABLE = "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Range, X-Provider-Key, X-Request-Id"
_READABLE = "Content-Disposition, Content-Range, Deprecation, Location, Retry-After, X-Request-Id, X-Total-Size"


class Origins:
    def __init__(self, settings: Settings, access: Access) -> None:
        self._access = access
        self._names = frozenset(name.lower() for name in _listed(settings.allowed_hosts))
        bound = settings.host.lower()
        self._own_names = frozenset((*_LOCAL_NAMES, f"[{bound}]" if ":" in bound else bound))
        allowed = _listed(settings.cors_origins)
        self._anywhere = "*" in allowed and access is Access.TOKEN
        self._allowed = frozenset(origin.rstrip("/").lower() for origin in allowed if origin != "*")

    def knows_host(self, headers: Headers) -> bool:
        """Whether the Host header names this server. With tokens any name is accepted: a page of another site has no
        token.

        Ports are not compared: the browser reached us, so its port is right, even if it is forwarded.
        """
        if self._access is Access.TOKEN or (self._access is Access.OPEN and not self._names):
            return True
        given = headers.getlist("host")
        found = _HOST.fullmatch(given[0]) if len(given) == 1 else None
        if found is None:
            return False
        name, whole = found[1].lower(), given[0].lower()
        return name in self._own_names or name in self._names or whole in self._names

    def is_own(self, headers: Headers) -> bool:
        """The page is ours: its origin equals the host that the browser used."""
        found = _ORIGIN.fullmatch(headers.get("origin", ""))
        if found is None:
            return False
        default, host = _DEFAULT_PORTS[found[1].lower()], headers.get("host", "").lower()
        return found[2].lower().removesuffix(default) == host.removesuffix(default)

    def is_allowed(self, headers: Headers) -> bool:
        """May read answers if it has a token."""
        return self._anywhere or self.is_listed(headers)

    def is_listed(self, headers: Headers) -> bool:
        """The operator listed exactly this origin."""
        return headers.get("origin", "").lower() in self._allowed

    def is_foreign(self, method: str, headers: Headers) -> bool:
        """The browser reports a request from another site's page. Following a link to one of our pages does not
        count."""
        if "origin" in headers:
            return not (self.is_own(headers) or self.is_listed(headers))
        if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
            return False
        opens_a_page = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return not (opens_a_page and method in SAFE_METHODS)

    def is_surely_own(self, headers: Headers) -> bool:
        """The browser confirms that the page is ours. A cookie needs this before it may change anything."""
        if "origin" in headers:
            return self.is_own(headers)
        return headers.get("sec-fetch-site") == "same-origin"

    def grant(self, headers: Headers) -> dict[str, str]:
        """Headers that let a listed origin read the answer; none for other origins."""
        origin = headers.get("origin")
        if origin is None or not self.is_allowed(headers):
            return {}
        if not self.is_listed(headers):  # any origin: never together with credentials
            return {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": _READABLE}
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Credentials": "true",
            "Access-Control-Expose-Headers": _READABLE,
            "Vary": "Origin",
        }

    def grant_ahead(self, headers: Headers) -> dict[str, str]:
        """The same for a preflight request."""
        ahead = {
            "Access-Control-Allow-Methods": _METHODS,
            "Access-Control-Allow-Headers": _ASKABLE,
            "Access-Control-Max-Age": "600",
        }
        return {**self.grant(headers), **ahead}


def _listed(text: str) -> list[str]:
    """``a, b``, or a JSON list as other systems use it."""
    plain = re.sub(r"""[\[\]"']""", " ", text) if '"' in text else text  # brackets alone may be an IPv6 address
    return [item for item in re.split(r"[\s,]+", plain) if item]
