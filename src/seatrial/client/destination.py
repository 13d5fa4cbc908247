"""Which service is asked, and as whom."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

from seatrial import __version__
from seatrial.errors import InvalidInput


@dataclass(frozen=True)
class Destination:
    """The address without any user in it: it is shown in errors. The token beside it is not shown."""

    url: httpx.URL
    token: str = field(default="", repr=False)

    @classmethod
    def of(cls, url: str, token: str) -> Self:
        """What is not named comes from the settings. A token in the address, ``https://TOKEN@host``, is understood."""
        from seatrial.settings import Settings

        chosen = url or Settings().server
        if not chosen:
            raise InvalidInput("No service is named.", field="server", fix="Give its address, or set SEATRIAL_SERVER.")
        try:
            parsed = httpx.URL(chosen)
        except httpx.InvalidURL as error:
            raise InvalidInput(f"The service's address cannot be read: {error}.", field="server") from error
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise InvalidInput(
                f"{parsed.copy_with(username=None, password=None)} is not the address of a service.",
                field="server",
                fix="It looks like http://127.0.0.1:8000.",
            )
        in_address = parsed.password or parsed.username
        return cls(parsed.copy_with(username=None, password=None), token or in_address or Settings().server_token)

    def options(self, timeout: float) -> dict[str, Any]:
        """For httpx's clients. A proxy cannot reach this machine's own loopback address, so it is not asked to."""
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
