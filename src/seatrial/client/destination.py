"""The service's address and token."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

from seatrial import __version__
from seatrial.errors import InvalidInput


@dataclass(frozen=True)
class Destination:
    """The address is shown in errors, so it contains no credentials. The token is never shown."""

    url: httpx.URL
    token: str = field(default="", repr=False)

    @classmethod
    def of(cls, url: str, token: str) -> Self:
        """Missing values come from the settings. A token in the address (``https://TOKEN@host``) is accepted."""
        from seatrial.settings import Settings

        chosen = url or Settings().server
        if not chosen:
            raise InvalidInput(
                "No service address given.", field="server", fix="Give its address, or set SEATRIAL_SERVER."
            )
        try:
            parsed = httpx.URL(chosen)
        except httpx.InvalidURL as error:
            raise InvalidInput(f"The service address is not a valid URL: {error}.", field="server") from error
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise InvalidInput(
                f"{parsed.copy_with(username=None, password=None)} is not a service address.",
                field="server",
                fix="An address looks like http://127.0.0.1:8000.",
            )
        in_address = parsed.password or parsed.username
        return cls(parsed.copy_with(username=None, password=None), token or in_address or Settings().server_token)

    def options(self, timeout: float) -> dict[str, Any]:
        """Arguments for httpx clients. Loopback addresses bypass proxies, which cannot reach them."""
        headers = {"User-Agent": f"seatrial/{__version__}"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return {
            "base_url": self.url,
            "headers": headers,
            "timeout": httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            "trust_env": not _is_loopback(self.url.host),
        }


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
