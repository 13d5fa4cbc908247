"""How far a dataset registry leads the service: no closer to this machine than the registry itself is.

A registry at a URL is untrusted, and the service fetches what it names for any caller. So it may not send the service
to files of this machine, nor from the internet into the operator's network. `seatrial` at the command line has no such
rule: its user reaches all that anyway.
"""

from __future__ import annotations

import ipaddress
import socket
import urllib.request
from dataclasses import dataclass
from enum import IntEnum
from http.client import HTTPMessage
from typing import IO, Any
from urllib.parse import SplitResult, urlsplit

from seatrial.errors import InvalidInput

_PORTS = {"http": 80, "https": 443}


class Nearness(IntEnum):
    PUBLIC = 0
    PRIVATE = 1
    THIS_MACHINE = 2
    NEVER = 3
    """Link-local, as a cloud's metadata is; multicast; reserved."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What the service may call for one registry."""

    nearest: Nearness

    @classmethod
    def of(cls, source: str) -> Reach:
        """A registry in a file is the operator's own words."""
        place = urlsplit(source)
        return cls(_look_up(place)[0] if place.scheme in _PORTS else Nearness.THIS_MACHINE)

    def admit(self, url: str) -> str:
        """The Git option that keeps the address of this repository as it is now; ``InvalidInput`` if it may not be
        called."""
        place = urlsplit(url)
        if place.scheme not in _PORTS:
            raise InvalidInput(
                f"The registry names a repository that a service does not fetch: {url}.",
                fix="Use an https URL, or import the dataset at the command line.",
            )
        near, address = _look_up(place)
        if near > self.nearest or near is Nearness.NEVER:
            raise InvalidInput(
                f"The registry leads to {place.hostname}, which is closer to this machine than the registry itself.",
                fix="Import the dataset at the command line, or from a registry file of your own.",
            )
        return f"http.curloptResolve={place.hostname}:{_port(place)}:{address}"


class SameHostOnly(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only to the host that the operator named, and never from https to http."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Any:
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        upgraded = before.scheme == "http" and after.scheme == "https" and before.port is None and after.port is None
        same = (before.scheme, _port(before)) == (after.scheme, _port(after))
        if before.hostname != after.hostname or not (same or upgraded):
            raise InvalidInput(
                f"The registry {req.full_url} sends its readers to {newurl}.",
                fix="Set SEATRIAL_REGISTRY to that address.",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def nearness(address: str) -> Nearness:
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(found, "ipv4_mapped", None) or getattr(found, "sixtofour", None)
    found = mapped or found
    if found.is_loopback or found.is_unspecified:
        return Nearness.THIS_MACHINE
    if found.is_link_local or found.is_multicast:
        return Nearness.NEVER
    if found.is_global:
        return Nearness.PUBLIC
    return Nearness.PRIVATE if found.is_private else Nearness.NEVER


def _look_up(place: SplitResult) -> tuple[Nearness, str]:
    """The nearest of a host's addresses, and one of them."""
    try:
        answers = socket.getaddrinfo(place.hostname, _port(place), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, ValueError) as unknown:
        raise InvalidInput(f"The registry leads to {place.netloc}, which has no address.") from unknown
    addresses = [str(answer[4][0]) for answer in answers]
    return max(nearness(address) for address in addresses), addresses[0]


def _port(place: SplitResult) -> int | None:
    return place.port or _PORTS.get(place.scheme)
