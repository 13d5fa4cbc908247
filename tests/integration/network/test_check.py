"""What ``seatrial doctor`` says about networks, where they work and where they cannot."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from harbor.models.task.config import NetworkPolicy

from seatrial.sandboxes.network.network_set import SandboxNetworks
from seatrial.sandboxes.network.probe import probe
from seatrial.sandboxes.options import SandboxOptions
from tests.integration.network.world import WEB, World, batch, reaches, run

pytestmark = pytest.mark.sandbox

TRY = """
import asyncio, sys
from pathlib import Path
from seatrial.sandboxes.network.probe import probe
from seatrial.sandboxes.options import SandboxOptions
for finding in asyncio.run(probe(SandboxOptions(cache=Path("/nonexistent")))):
    print(finding.name, finding.ok, finding.detail, finding.fix, sep="|")
"""


async def test_a_machine_where_it_works(surroundings: World, options: SandboxOptions) -> None:
    before = run("ip -brief address", "nft list ruleset")
    findings = {finding.name: finding for finding in await probe(options, names=surroundings.names)}
    assert all(finding.ok for finding in findings.values()), findings
    assert "wan" in findings["way out"].detail
    assert "203.0.113.53" in findings["name resolution"].detail
    assert run("ip -brief address", "nft list ruleset") == before


async def test_a_worker_at_work_is_not_disturbed(
    networks: SandboxNetworks, surroundings: World, options: SandboxOptions
) -> None:
    network = await networks.acquire(NetworkPolicy(), "one")
    assert all(finding.ok for finding in await probe(options, names=surroundings.names))
    assert await asyncio.to_thread(reaches, network.netns_path, WEB)


async def test_what_is_missing_is_said_with_what_would_help(surroundings: World, options: SandboxOptions) -> None:
    batch("route del default")
    surroundings.resolv_conf.write_text("")
    wrong = options.model_copy(update={"network_mode": "mesh"})
    findings = {finding.name: finding for finding in await probe(wrong, names=surroundings.names)}
    assert {name for name, finding in findings.items() if not finding.ok} == {
        "network settings",
        "way out",
        "name resolution",
    }
    assert all(finding.fix for finding in findings.values() if not finding.ok)
    assert findings["sandbox network"].ok


async def test_without_rights_the_problem_is_named(surroundings: World) -> None:
    command = ["setpriv", "--bounding-set=-net_admin,-sys_admin", "--inh-caps=-net_admin,-sys_admin"]
    for extra, words in ((command, "does not let root"), ([], "public, no-network and allowlist")):
        done = await asyncio.to_thread(
            subprocess.run, [*extra, sys.executable, "-c", TRY], capture_output=True, text=True, check=True
        )
        found = next(line for line in done.stdout.splitlines() if line.startswith("sandbox network|"))
        assert words in found
        assert ("Run as root with CAP_NET_ADMIN" in found) == bool(extra)


async def test_without_nftables_the_package_is_named(surroundings: World, tmp_path: Path) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", TRY],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": str(tmp_path)},
    )
    found = next(line for line in done.stdout.splitlines() if line.startswith("sandbox network|"))
    assert found == "sandbox network|False|nftables is not installed.|Run: apt-get install nftables"
    assert "seat0" not in run("ip -brief link")
