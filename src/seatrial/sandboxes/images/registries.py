"""Which registries belong to the operator, and which registries a task may not make this machine call.

``fetcher`` checks every name from a ``FROM`` line or a ``docker_image``. The operator's registries are called from the
machine's own network with the credentials of ``docker login``. All others need a public address, and are called without
credentials from the network of builds.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable

from seatrial.errors import ImageFault
from seatrial.sandboxes.images.references import parse
from seatrial.sandboxes.options import SandboxOptions

Resolve = Callable[[str], Awaitable[Iterable[str]]]
OWN_REPOSITORY = "localhost/seatrial"
"""The names of built images. No task may use the image of another."""


class Registries:
    def __init__(self, own: Iterable[str], resolve: Resolve | None = None) -> None:
        """``own`` are the operator's registries, as ``host`` or ``host:port``."""
        self._own = frozenset(own)
        self._resolve = resolve or _addresses

    @classmethod
    def of(cls, options: SandboxOptions) -> Registries:
        repositories = (options.docker_registry, options.default_registry)
        mapped = {parse(f"{name.rstrip('/')}:x").registry for name in repositories if name}
        listed = {name for name in re.split(r"[\s,]+", options.image_registries) if name}
        mapped.discard("docker.io")  # others have repositories there too
        return cls(mapped | listed)

    def trusts(self, registry: str) -> bool:
        return registry in self._own

    async def check(self, reference: str) -> None:
        """``ImageFault`` for a name that a task may not make this machine pull."""
        registry = parse(reference).registry
        if self.trusts(registry):
            return
        host = _host(registry)
        literal = _literal(host)
        local = host == "localhost" or host.endswith(".localhost")
        found = [literal] if literal or local else await self._resolve(host)
        if local or not all(_is_public(address) for address in found):
            raise ImageFault(
                f"The registry {registry} is at a private address.",
                fix="The operator can allow it: SEATRIAL_IMAGE_REGISTRIES.",
            )


def _is_public(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if found.version == 6 else None
    return (mapped or found).is_global and not (mapped or found).is_multicast


def _host(registry: str) -> str:
    if registry.startswith("["):
        return registry[1:].partition("]")[0]
    return registry.partition(":")[0].lower().rstrip(".")


def _literal(host: str) -> str:
    """The address if the host is one, also in old spellings such as ``0x7f.1`` and ``2130706433``."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host)) if re.fullmatch(r"[0-9a-fx.]+", host) else ""
    except OSError:
        return ""


async def _addresses(host: str) -> list[str]:
    """Empty for an unknown name: the pull reports that."""
    try:
        async with asyncio.timeout(10):
            found = await asyncio.get_running_loop().getaddrinfo(host, 443, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError, UnicodeError):
        return []
    return [str(entry[4][0]) for entry in found]
