"""Which registries are the operator's own, and which addresses no task may have this machine ask.

``bases`` checks every name that a task chose: a ``FROM`` line or a ``docker_image``. Registries of the operator are
spoken to from the machine's own network with the credentials that ``docker login`` left there. Any other registry is
asked without credentials, has to be a public address, and is asked from the network that builds get.
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
"""Where built images are kept. No task may name another's."""


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
        mapped.discard("docker.io")  # a repository there makes nobody else's images the operator's own
        return cls(mapped | listed)

    def trusts(self, registry: str) -> bool:
        return registry in self._own

    async def check(self, reference: str) -> None:
        """``ImageFault`` for a name that a task may not have this machine ask for."""
        registry = parse(reference).registry
        if self.trusts(registry):
            return
        host = _host(registry)
        if host == "localhost" or host.endswith(".localhost"):
            raise _refused(registry)
        literal = _literal(host)
        found = [literal] if literal else list(await self._resolve(host))
        if not all(_is_public(address) for address in found):
            raise _refused(registry)


def _is_public(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if found.version == 6 else None
    return (mapped or found).is_global and not (mapped or found).is_multicast


def _refused(registry: str) -> ImageFault:
    return ImageFault(
        f"The registry {registry} is at a private address.",
        fix="The operator can allow it: SEATRIAL_IMAGE_REGISTRIES.",
    )


def _host(registry: str) -> str:
    if registry.startswith("["):
        return registry[1:].partition("]")[0]
    return registry.partition(":")[0].lower().rstrip(".")


def _literal(host: str) -> str:
    """The address that a host is spelled as, old spellings such as ``0x7f.1`` and ``2130706433`` included."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host)) if re.fullmatch(r"[0-9a-fx.]+", host) else ""
    except OSError:
        return ""


async def _addresses(host: str) -> list[str]:
    """Nothing where nobody knows the name: whoever asks the registry finds that out."""
    try:
        async with asyncio.timeout(10):
            found = await asyncio.get_running_loop().getaddrinfo(host, 443, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError, UnicodeError):
        return []
    return [str(entry[4][0]) for entry in found]
