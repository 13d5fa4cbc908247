"""Where a request comes from, as far as a browser tells: the name it used for us, and the page that asked.

A page of another site can make a browser call a service on its user's machine, by a form, by a script, or by a name of
its own that suddenly means 127.0.0.1 (DNS rebinding). The guard asks here; this knows nothing of tokens.
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
        """Whether the Host header names us. With tokens any name will do: a page of another site has none to show.

        Ports are not compared: a browser reached us, so its port is right, even through a forwarded one."""
        if self._access is Access.TOKEN or (self._access is Access.OPEN and not self._names):
            return True
        given = headers.getlist("host")
        found = _HOST.fullmatch(given[0]) if len(given) == 1 else None
        if found is None:
            return False
        name, whole = found[1].lower(), given[0].lower()
        return name in self._own_names or name in self._names or whole in self._names

    def is_own(self, headers: Headers) -> bool:
        """The page that asks is ours: the origin is what the browser called us by."""
        found = _ORIGIN.fullmatch(headers.get("origin", ""))
        if found is None:
            return False
        default, host = _DEFAULT_PORTS[found[1].lower()], headers.get("host", "").lower()
        return found[2].lower().removesuffix(default) == host.removesuffix(default)

    def is_allowed(self, headers: Headers) -> bool:
        """May read our answers, if it shows a token."""
        return self._anywhere or self.is_listed(headers)

    def is_listed(self, headers: Headers) -> bool:
        """The operator trusts that very origin."""
        return headers.get("origin", "").lower() in self._allowed

    def is_foreign(self, method: str, headers: Headers) -> bool:
        """A browser says that a page of another site asks. Opening one of our pages from a link is not that."""
        if "origin" in headers:
            return not (self.is_own(headers) or self.is_listed(headers))
        if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
            return False
        opens_a_page = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return not (opens_a_page and method in SAFE_METHODS)

    def is_surely_own(self, headers: Headers) -> bool:
        """Told so by the browser: what a cookie needs before it may change anything."""
        if "origin" in headers:
            return self.is_own(headers)
        return headers.get("sec-fetch-site") == "same-origin"

    def grant(self, headers: Headers) -> dict[str, str]:
        """The headers that let a listed origin read the answer; none for any other."""
        origin = headers.get("origin")
        if origin is None or not self.is_allowed(headers):
            return {}
        if not self.is_listed(headers):  # anywhere: never together with credentials
            return {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": _READABLE}
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Credentials": "true",
            "Access-Control-Expose-Headers": _READABLE,
            "Vary": "Origin",
        }

    def grant_ahead(self, headers: Headers) -> dict[str, str]:
        """The same for the question that a browser asks before the request itself."""
        ahead = {
            "Access-Control-Allow-Methods": _METHODS,
            "Access-Control-Allow-Headers": _ASKABLE,
            "Access-Control-Max-Age": "600",
        }
        return {**self.grant(headers), **ahead}


def _listed(text: str) -> list[str]:
    """``a, b``; a JSON list, as other systems want it, is understood too."""
    plain = re.sub(r"""[\[\]"']""", " ", text) if '"' in text else text  # brackets alone belong to an IPv6 address
    return [item for item in re.split(r"[\s,]+", plain) if item]
