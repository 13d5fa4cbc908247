"""How names resolve in a sandbox: as they do on the machine, wherever the machine's resolver is."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.sandboxes.network.network import SandboxNetwork
from seatrial.sandboxes.network.network_set import SandboxNetworks
from seatrial.sandboxes.options import SandboxOptions
from tests.integration.network.world import OTHER_WEB, WEB, ZONE, World, look_up, reaches

pytestmark = pytest.mark.sandbox

PUBLIC = NetworkPolicy()


async def named(network: SandboxNetwork, name: str, *, stream: bool = False) -> list[str] | int:
    assert network.netns_path is not None
    return await asyncio.to_thread(look_up, network.netns_path, network.resolv_conf, name, stream=stream)


async def test_the_machines_resolver_may_sit_where_no_sandbox_can_go(
    networks: SandboxNetworks, surroundings: World
) -> None:
    surroundings.serve_names_here("127.0.0.1")
    surroundings.resolv_conf.write_text("nameserver 127.0.0.1\n")
    network = await networks.acquire(PUBLIC, "one")
    assert await named(network, "web.example") == [WEB]
    assert await named(network, "nowhere.example") == 3


async def test_the_next_resolver_is_asked_when_one_is_silent(networks: SandboxNetworks, surroundings: World) -> None:
    surroundings.resolv_conf.write_text(f"nameserver 127.0.0.9\n{surroundings.resolv_conf.read_text()}")
    network = await networks.acquire(PUBLIC, "one")
    assert await named(network, "web.example") == [WEB]


async def test_the_hosts_file_of_the_machine_counts_but_not_its_loopback(
    networks: SandboxNetworks, surroundings: World
) -> None:
    surroundings.hosts.write_text(f"127.0.0.1 localhost web.example\n{OTHER_WEB} mirror.example Mirror # comment\n")
    network = await networks.acquire(PUBLIC, "one")
    assert await named(network, "mirror.example") == [OTHER_WEB]
    assert await named(network, "MIRROR") == [OTHER_WEB]
    assert await named(network, "web.example") == [WEB]


async def test_long_answers_come_over_a_stream(networks: SandboxNetworks) -> None:
    network = await networks.acquire(PUBLIC, "one")
    assert await named(network, "many.example") == []  # cut off, which tells the asker to come again
    assert await named(network, "many.example", stream=True) == ZONE["many.example"]


async def test_the_c_library_of_a_sandbox_understands_us(
    networks: SandboxNetworks, surroundings: World, tmp_path: Path
) -> None:
    """The files are bound over the real ones in a mount namespace, as the container runtime does it."""
    surroundings.resolv_conf.write_text(f"{surroundings.resolv_conf.read_text()}search example\n")
    network = await networks.acquire(PUBLIC, "my-host")
    patient = f"{network.resolv_conf}options timeout:30 attempts:5\n"
    for name, content in (("resolv", patient), ("hosts-file", network.hosts)):
        (tmp_path / name).write_text(content)
    script = (
        f"mount --bind {tmp_path}/resolv /etc/resolv.conf && mount --bind {tmp_path}/hosts-file /etc/hosts && "
        "getent ahostsv4 web.example && getent ahostsv4 other && getent ahostsv4 my-host && ! getent hosts no.example"
    )
    done = await asyncio.to_thread(
        subprocess.run,
        ["nsenter", f"--net={network.netns_path}", "unshare", "--mount", "sh", "-c", script],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert f"{WEB} " in done.stdout
    assert f"{OTHER_WEB} " in done.stdout
    assert network.hosts.splitlines()[-1].split()[0] in done.stdout


async def test_an_address_is_closed_when_its_answer_is_too_old(surroundings: World, options: SandboxOptions) -> None:
    now = [0.0]
    allowed = NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=["web.example", "other.example"])
    async with SandboxNetworks(options, names=surroundings.names, clock=lambda: now[0]) as networks:
        network = await networks.acquire(allowed, "one")
        assert await named(network, "web.example") == [WEB]
        now[0] = 3000.0
        assert await named(network, "other.example") == [OTHER_WEB]
        now[0] = 4000.0
        await networks.sweep()
        assert not await asyncio.to_thread(reaches, network.netns_path, WEB)
        assert await asyncio.to_thread(reaches, network.netns_path, OTHER_WEB)
        assert await named(network, "web.example") == [WEB]
        assert await asyncio.to_thread(reaches, network.netns_path, WEB)


async def test_a_container_runtime_takes_the_path_from_another_mount_namespace(
    networks: SandboxNetworks, tmp_path: Path
) -> None:
    network = await networks.acquire(PUBLIC, "one")
    done = await asyncio.to_thread(
        subprocess.run,
        ["unshare", "--mount", "--propagation", "private", "nsenter", f"--net={network.netns_path}", "readlink",
         "/proc/self/ns/net"],
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    assert network.netns_path is not None
    assert done.stdout.strip() == os.readlink(network.netns_path)
