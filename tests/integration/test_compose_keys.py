"""Keys of a compose file that both sandboxes of ours apply, or say that they do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from harbor.models.task.config import NetworkMode, NetworkPolicy

from seatrial.sandboxes.sandbox import Sandbox
from tests.engine_fixture import container_engine, run_dir
from tests.trials import Workplace

__all__ = ["container_engine", "run_dir"]

COMPOSE = """
services:
  main:
    build: .
    dns: ["192.0.2.53", "192.0.2.54"]
    tmpfs: ["/scratch:size=1m,mode=0770", "/run/programs:exec"]
"""
PUBLIC = NetworkPolicy(network_mode=NetworkMode.PUBLIC)
ALLOWLIST = NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=["example.com"])


@pytest.fixture(
    params=[pytest.param("oci", marks=pytest.mark.sandbox), pytest.param("docker", marks=pytest.mark.engine)]
)
def workplace(request: pytest.FixtureRequest, tmp_path: Path, image_cache: Path) -> Workplace:
    engine = request.getfixturevalue("container_engine") if request.param == "docker" else None
    return Workplace(tmp_path, image_cache, engine)


async def _said(sandbox: Sandbox, command: str) -> list[str]:
    return ((await sandbox.exec(command)).stdout or "").split()


async def test_tmpfs_is_in_memory_for_agent_and_verifier(workplace: Workplace, tmp_path: Path) -> None:
    (tmp_path / "test.sh").write_text("true\n")
    sandbox = workplace.sandbox(compose=COMPOSE)
    await sandbox.start(force_build=False)
    try:
        assert await _said(sandbox, "stat -f -c %T /scratch /run/programs /app") == ["tmpfs", "tmpfs", "overlayfs"]
        assert await _said(sandbox, "stat -c %a /scratch; df --output=size /scratch | tail -1") == ["770", "1024"]
        run = "cp /bin/true $d/true && $d/true; echo $?"
        assert await _said(sandbox, f"for d in /scratch /run/programs; do {run}; done") == ["126", "0"]
        await sandbox.exec("echo kept > /scratch/by-agent")
        await sandbox.upload_dir(tmp_path, "/tests")
        assert await _said(sandbox, "cat /scratch/by-agent") == ["kept"]
        assert not [line for line in sandbox.facts.not_applied if "tmpfs" in line]
    finally:
        await sandbox.stop(delete=True)


@pytest.mark.parametrize(("network", "applied"), [(PUBLIC, True), (ALLOWLIST, False)], ids=["public", "allowlist"])
async def test_name_servers_of_the_task(workplace: Workplace, network: NetworkPolicy, applied: bool) -> None:
    """An allowlist by name needs ours, and the lock tells who was not asked."""
    sandbox = workplace.sandbox(compose=COMPOSE, network=network)
    await sandbox.start(force_build=False)
    try:
        servers = await _said(sandbox, "grep nameserver /etc/resolv.conf | cut -d' ' -f2")
        assert (servers == ["192.0.2.53", "192.0.2.54"]) is applied and servers
        assert bool([line for line in sandbox.facts.not_applied if line.startswith("dns 192.0.2.53")]) is not applied
    finally:
        await sandbox.stop(delete=True)
