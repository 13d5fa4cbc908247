"""What a sandbox reaches, in each mode and after each switch. The modes' finer points have tests of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harbor.environments.base import BaseEnvironment
from harbor.models.task.config import NetworkMode, NetworkPolicy

from tests.contracts.sandbox import outside as net
from tests.contracts.sandbox.conftest import MakeSandbox
from tests.contracts.sandbox.kinds import Wish
from tests.contracts.sandbox.outside import GREETING, Outside, fetch, reach
from tests.waiting import LIMIT_SEC, eventually

PUBLIC = NetworkPolicy(network_mode=NetworkMode.PUBLIC)
NOTHING = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)
LISTED = NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=[net.ALLOWED])


@pytest.fixture
def outside(run_dir: Path) -> Iterator[Outside]:
    with net.outside(run_dir) as found:
        assert reach(found.allowed) == reach(found.other) == reach(found.metadata) == GREETING
        yield found


_REFUSED_SEC = 3.0
"""What is not refused at once is dropped. The kernel needs no process of this machine to connect, but gVisor does: it
may take longer on a busy machine, so this is for connections that must not come about."""


async def _reaches(sandbox: BaseEnvironment, address: str, port: int = net.PORT, sec: float = LIMIT_SEC) -> bool:
    result = await sandbox.exec(fetch(address, port, sec), timeout_sec=round(2 * LIMIT_SEC))
    return GREETING in (result.stdout or "")


async def _is_kept_from(sandbox: BaseEnvironment, address: str, port: int = net.PORT) -> bool:
    return not await _reaches(sandbox, address, port, _REFUSED_SEC)


async def test_public(make_sandbox: MakeSandbox, outside: Outside) -> None:
    sandbox = await make_sandbox(Wish(network=PUBLIC))
    assert await _reaches(sandbox, outside.allowed)
    assert await _reaches(sandbox, outside.other)


async def test_no_network(make_sandbox: MakeSandbox, outside: Outside) -> None:
    sandbox = await make_sandbox(Wish(network=NOTHING))
    assert await _is_kept_from(sandbox, outside.allowed)
    # Its own loopback is there all the same.
    serve = (
        "perl -MIO::Socket -e '$s=IO::Socket::INET->new(LocalPort=>9,Listen=>1)||die; $c=$s->accept; print $c qq(own)'"
    )
    ask = fetch("127.0.0.1", 9)
    result = await sandbox.exec(f"({serve} >/dev/null 2>&1 &); for i in $(seq 600); do {ask} && break; sleep 0.1; done")
    assert result.stdout == "own"


async def test_allowlist(make_sandbox: MakeSandbox, outside: Outside) -> None:
    sandbox = await make_sandbox(Wish(network=LISTED))
    assert await _reaches(sandbox, outside.allowed)
    assert await _is_kept_from(sandbox, outside.other)


async def test_network_can_be_switched(make_sandbox: MakeSandbox, outside: Outside) -> None:
    """As between a task's phases; also back, and for a sandbox that began without any network."""
    sandbox = await make_sandbox(Wish(network=NOTHING, phases=(PUBLIC, LISTED)))
    for number, policy in enumerate((NOTHING, PUBLIC, LISTED, NOTHING, PUBLIC)):
        await sandbox.set_network_policy(policy)
        for address, reached_by in ((outside.allowed, (PUBLIC, LISTED)), (outside.other, (PUBLIC,))):
            ask = _reaches if policy in reached_by else _is_kept_from
            assert await ask(sandbox, address), (number, address)


async def test_metadata_address_is_out_of_reach(make_sandbox: MakeSandbox, outside: Outside) -> None:
    sandbox = await make_sandbox(Wish(network=PUBLIC))
    assert await _reaches(sandbox, outside.allowed)
    assert await _is_kept_from(sandbox, outside.metadata)


async def test_listeners_of_the_machine_are_out_of_reach(make_sandbox: MakeSandbox, outside: Outside) -> None:
    """The API, the database and the broker listen like this. The machine reaches them; no sandbox does."""
    sandbox = await make_sandbox(Wish(network=PUBLIC))
    assert await _reaches(sandbox, outside.allowed)
    gateway = await sandbox.exec(
        "perl -lane 'if ($F[1] eq q(00000000)) { print join q(.), reverse map { hex } $F[2] =~ /../g }' /proc/net/route"
    )
    addresses = {*net.machine_addresses(), *(gateway.stdout or "").split()}
    assert net.MACHINE in addresses
    with net.machine_listener() as port:
        assert reach(net.MACHINE, port) == GREETING
        for address in sorted(addresses):
            assert await _is_kept_from(sandbox, address, port), address


async def test_neighbours_are_out_of_reach(make_sandbox: MakeSandbox, outside: Outside) -> None:
    one, other = await make_sandbox(Wish(network=PUBLIC)), await make_sandbox(Wish(network=PUBLIC))
    serve = (
        "perl -MIO::Socket -e '$s=IO::Socket::INET->new(LocalPort=>8377,Listen=>5)||die;"
        " while($c=$s->accept){print $c qq(hello from outside)}'"
    )
    await one.exec(f"{serve} >/dev/null 2>&1 &")
    address = (
        (await one.exec("hostname -I || awk '/32 host LOCAL/ {print f} {f=$2}' /proc/net/fib_trie")).stdout or ""
    ).split()
    own = [found for found in address if not found.startswith("127.")]
    assert own
    await eventually(lambda: _reaches(one, own[0]), "the neighbour serves")
    assert await _reaches(other, outside.allowed)
    assert await _is_kept_from(other, own[0])


async def test_nothing_of_the_network_is_theirs_to_change(sandbox: BaseEnvironment) -> None:
    for command in ("ip link set lo down", "ip route flush all", "nft flush ruleset", "iptables -F"):
        assert (await sandbox.exec(command)).return_code != 0
