"""What a policy and the operator's default mean for a sandbox."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

import pytest
from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.errors import InvalidInput, Unsupported
from seatrial.sandboxes.network.network import hostname_of
from seatrial.sandboxes.network.reach import DefaultNetwork, default_network, parse_networks, reach_of
from seatrial.sandboxes.options import SandboxOptions


def options(mode: str, *, allow_host: bool = False) -> SandboxOptions:
    return SandboxOptions(cache=Path("/nonexistent"), network_mode=mode, allow_host_network=allow_host)


def listed(*hosts: str) -> NetworkPolicy:
    return NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=list(hosts))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("bridge", "public"), ("public", "public"), ("default", "public"), (" Bridge ", "public"), ("none", "no-network")],
)
def test_the_operators_mode_is_the_default_of_silent_tasks(mode: str, expected: str) -> None:
    default = default_network(options(mode))
    assert default == expected


def test_host_needs_permission() -> None:
    assert default_network(options("host", allow_host=True)) is DefaultNetwork.HOST
    with pytest.raises(InvalidInput, match="SEATRIAL_ALLOW_HOST_NETWORK"):
        default_network(options("host"))


@pytest.mark.parametrize("mode", ["mesh", "container:abc", "", "my-network"])
def test_an_unknown_mode_is_refused(mode: str) -> None:
    with pytest.raises(InvalidInput, match="bridge, none or host"):
        default_network(options(mode))


def test_modes() -> None:
    public, nothing = reach_of(NetworkPolicy()), reach_of(NetworkPolicy(network_mode=NetworkMode.NO_NETWORK))
    assert (public.everything, public.nothing, public.admits("any.example")) == (True, False, True)
    assert (nothing.everything, nothing.nothing, nothing.admits("any.example")) == (False, True, False)
    assert reach_of(listed()).nothing


def test_names_and_what_lies_below_them() -> None:
    reach = reach_of(listed("Api.Example.", "*.below.example"))
    assert [reach.admits(name) for name in ("api.example", "API.example.", "x.below.example", "x.y.below.example")] == [
        True
    ] * 4
    refused = (
        "example",
        "x.api.example",
        "below.example",
        "xbelow.example",
        "api.example.evil",
        "",
        "*.below.example.x",
    )
    assert [reach.admits(name) for name in refused] == [False] * len(refused)
    assert reach.description == "allowlist: api.example, *.below.example"


def test_addresses_without_overlaps() -> None:
    reach = reach_of(listed("10.0.0.0/8", "10.1.0.0/16", "192.0.2.1", "192.0.2.0", "web.example"))
    assert reach.networks == (IPv4Network("10.0.0.0/8"), IPv4Network("192.0.2.0/31"))
    assert reach.names == ("web.example",)


@pytest.mark.parametrize("entry", ["2001:db8::1", "2001:db8::/32"])
def test_ipv6_is_refused_aloud(entry: str) -> None:
    with pytest.raises(Unsupported, match="IPv6"):
        reach_of(listed(entry))


@pytest.mark.parametrize("entry", ["https://web.example", "web.example:443", "10.0.0.1/8", "a*.example", ""])
def test_entries_that_are_no_hosts_are_refused(entry: str) -> None:
    with pytest.raises(InvalidInput, match="allowlist"):
        reach_of(listed(entry))


def test_private_destinations() -> None:
    assert parse_networks("10.1.2.3, 10.4.0.0/16 10.4.1.0/24") == (
        IPv4Network("10.1.2.3/32"),
        IPv4Network("10.4.0.0/16"),
    )
    assert parse_networks("") == ()
    for wrong in ("mirror.example", "10.0.0.1/8", "10.0.0", "fc00::/7"):
        with pytest.raises(InvalidInput, match="SEATRIAL_PRIVATE_DESTINATIONS"):
            parse_networks(wrong)


def test_host_names() -> None:
    assert hostname_of("Hello World__1") == "hello-world-1"
    assert hostname_of("___") == "sandbox"
    assert len(hostname_of("x" * 200)) == 63
