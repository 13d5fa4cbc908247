"""What a sandbox may reach: a task's network policy and the operator's default, as plain values.

Pure. The router and the name server enforce it, the trial's lock quotes ``Reach.description``. The rules:

- A task's policy overrides the operator's default, which is for tasks without a policy.
- Private ranges are closed to ``public``. The operator can open all of them (``allow_private_network``) or some
  (``private_destinations``). A private address on a task's allowlist is refused unless the operator opened it, because
  a hostile task would name a private database. A *name* with a private address opens nothing, because the owner of the
  name could point it anywhere.
- ``NEVER`` is always closed: link-local addresses with the metadata service of clouds, and addresses that no honest
  packet to the outside has. So are this machine's own addresses and other sandboxes.
- IPv6 is closed in every mode, except on the sandbox's loopback. An allowlist entry that needs it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError, collapse_addresses

from harbor.models.task.config import (
    NetworkAllowlistEntryType,
    NetworkMode,
    NetworkPolicy,
    classify_network_allowlist_entry,
    normalize_allowed_hosts,
)

from seatrial.domain.frozen import Frozen
from seatrial.errors import InvalidInput, Unsupported
from seatrial.sandboxes.options import SandboxOptions

NEVER = tuple(
    IPv4Network(network) for network in ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4")
)
PRIVATE = tuple(
    IPv4Network(network)
    for network in ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15")
)


class DefaultNetwork(StrEnum):
    """The network of a task without a policy."""

    PUBLIC = "public"
    NONE = "no-network"
    HOST = "host"


class Reach(Frozen):
    """What one sandbox may reach now."""

    everything: bool = False
    """All of the public internet."""
    names: tuple[str, ...] = ()
    """Host names, and ``*.suffix`` for every name below a suffix (not the suffix itself)."""
    networks: tuple[IPv4Network, ...] = ()
    """Addresses named literally, without overlaps."""
    description: str = "no-network"

    @property
    def nothing(self) -> bool:
        return not (self.everything or self.names or self.networks)

    def admits(self, name: str) -> bool:
        """Whether that host name may be looked up."""
        name = name.rstrip(".").lower()
        if self.everything or name in self.names:
            return True
        labels = name.split(".")
        return any("*." + ".".join(labels[start:]) in self.names for start in range(1, len(labels)))


def reach_of(policy: NetworkPolicy) -> Reach:
    """Harbor's policy as a reach. Raises ``Unsupported`` for entries that this sandbox cannot apply."""
    match policy.network_mode:
        case NetworkMode.PUBLIC:
            return Reach(everything=True, description="public (NAT)")
        case NetworkMode.NO_NETWORK:
            return Reach()
    try:
        entries = normalize_allowed_hosts(list(policy.allowed_hosts))
    except ValueError as error:
        raise InvalidInput(f"The allowlist is not valid: {error}", field="allowed_hosts") from error
    names, networks = [], []
    for entry in entries:
        match classify_network_allowlist_entry(entry):
            case NetworkAllowlistEntryType.HOSTNAME | NetworkAllowlistEntryType.WILDCARD_HOSTNAME:
                names.append(entry)
            case NetworkAllowlistEntryType.IPV4_ADDRESS | NetworkAllowlistEntryType.IPV4_CIDR:
                networks.append(IPv4Network(entry))
            case _:
                raise Unsupported(
                    f"The allowlist entry {entry!r} needs IPv6, which is closed in this sandbox.",
                    field="allowed_hosts",
                    fix="Name the host, or its IPv4 address.",
                )
    return Reach(
        names=tuple(names),
        networks=tuple(collapse_addresses(networks)),
        description="allowlist: " + (", ".join(entries) or "nothing"),
    )


def permitted_reach(policy: NetworkPolicy, options: SandboxOptions) -> Reach:
    """``reach_of`` within what the operator opened.

    Raises for an entry in a private range. A wide entry such as ``0.0.0.0/0`` loses its private parts."""
    reach = reach_of(policy)
    if options.allow_private_network:
        return reach
    opened = parse_networks(options.private_destinations)
    networks = [part for network in reach.networks for part in _permitted_parts(network, opened)]
    return reach.model_copy(update={"networks": tuple(collapse_addresses(networks))})


def _permitted_parts(network: IPv4Network, opened: Iterable[IPv4Network]) -> list[IPv4Network]:
    if any(network.subnet_of(grant) for grant in opened):
        return [network]
    if any(network.subnet_of(private) for private in PRIVATE):
        raise Unsupported(
            f"The allowlist names {network}, a private address, which only the operator can open.",
            field="allowed_hosts",
            fix=f"Set SEATRIAL_PRIVATE_DESTINATIONS={network} if that is meant.",
        )
    parts = [network]
    for private in PRIVATE:
        parts = [rest for part in parts for rest in _without(part, private)]
    return parts + [grant for grant in opened if grant.subnet_of(network)]


def _without(network: IPv4Network, hole: IPv4Network) -> list[IPv4Network]:
    return list(network.address_exclude(hole)) if hole.subnet_of(network) else [network]


def default_network(options: SandboxOptions) -> DefaultNetwork:
    """``CONTAINER_NETWORK_MODE``: the network of tasks without a ``network_mode``."""
    match options.network_mode.strip().lower():
        case "bridge" | "public" | "default":
            return DefaultNetwork.PUBLIC
        case "none" | "no-network":
            return DefaultNetwork.NONE
        case "host" if options.allow_host_network:
            return DefaultNetwork.HOST
        case "host":
            raise InvalidInput(
                "The network mode 'host' lets sandboxes share this machine's network and is not allowed here.",
                field="network_mode",
                fix="Set SEATRIAL_ALLOW_HOST_NETWORK=true, or CONTAINER_NETWORK_MODE=bridge.",
            )
        case other:
            raise InvalidInput(
                f"The network mode {other!r} is not known.",
                field="network_mode",
                fix="Set CONTAINER_NETWORK_MODE to bridge, none or host.",
            )


def parse_networks(words: str) -> tuple[IPv4Network, ...]:
    """The operator's ``private_destinations``: addresses and CIDR ranges, separated by commas or spaces."""
    networks = []
    for word in words.replace(",", " ").split():
        try:
            networks.append(IPv4Network(word))
        except (AddressValueError, NetmaskValueError, ValueError) as error:
            raise InvalidInput(
                f"{word!r} is not an IPv4 address or range: {error}",
                field="private_destinations",
                fix="Set SEATRIAL_PRIVATE_DESTINATIONS to addresses such as 10.1.2.3 or 10.1.0.0/16.",
            ) from error
    return tuple(collapse_addresses(networks))


def is_in(address: IPv4Address, networks: Iterable[IPv4Network]) -> bool:
    return any(address in network for network in networks)


def require_host_network(options: SandboxOptions) -> None:
    """``InvalidInput`` unless the operator lets sandboxes share this machine's own network."""
    if not options.allow_host_network:
        raise InvalidInput(
            "Sandboxes may not share this machine's network.",
            field="network_mode",
            fix="Set SEATRIAL_ALLOW_HOST_NETWORK=true to allow it.",
        )


def require_open(policy: NetworkPolicy) -> None:
    """``Unsupported`` for a policy that would limit the machine's own network."""
    if policy.network_mode is not NetworkMode.PUBLIC:
        raise Unsupported(
            f"The network mode {policy.network_mode.value!r} does not work on the machine's own network.",
            field="network_mode",
            fix="Set CONTAINER_NETWORK_MODE=bridge.",
        )
