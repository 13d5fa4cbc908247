"""What the operator decides: privileges, the network of tasks that say nothing, and compose files as one container."""

from __future__ import annotations

from pathlib import Path

import pytest
from harbor.models.task.config import NetworkPolicy, TaskConfig

from seatrial.errors import InvalidInput
from seatrial.sandboxes.oci.environment import OciEnvironment
from seatrial.sandboxes.oci.probe import probe
from seatrial.sandboxes.options import SandboxOptions
from tests.trials import Workplace
from tests.waiting import LIMIT_SEC

pytestmark = pytest.mark.sandbox

COMPOSE = """services:
  client:
    build: {dockerfile: Dockerfile}
    command: ["sh", "-c", "echo $$FROM_COMPOSE > /app/started; sleep infinity"]
    environment: ["FROM_COMPOSE=yes"]
    hostname: box
"""


def _with_compose(workplace: Workplace, text: str, **options: bool) -> OciEnvironment:
    sandbox = workplace.sandbox()
    (sandbox.environment_dir / "docker-compose.yaml").write_text(text)
    return OciEnvironment(
        environment_dir=sandbox.environment_dir,
        environment_name="suite",
        session_id="suite__env",
        trial_paths=sandbox.trial_paths,
        task_env_config=sandbox.task_env_config,
        network_policy=sandbox.network_policy,
        options=workplace.options(**options),
        owner={"install": workplace.install},
    )


async def test_compose_file_with_one_service_is_one_container(workplace: Workplace) -> None:
    sandbox = _with_compose(workplace, COMPOSE)
    await sandbox.start(force_build=False)
    try:
        shown = "until test -s /app/started; do sleep 0.05; done; cat /app/started; hostname; echo $FROM_COMPOSE"
        assert (await sandbox.exec(shown, timeout_sec=int(LIMIT_SEC))).stdout == "yes\nbox\nyes\n"
    finally:
        await sandbox.stop(delete=True)


async def test_privileges_only_where_allowed_and_said(workplace: Workplace) -> None:
    asking = COMPOSE + "    privileged: true\n"
    with pytest.raises(InvalidInput, match="privileged"):
        _with_compose(workplace, asking)
    sandbox = _with_compose(workplace, asking, allow_privileged=True)
    await sandbox.start(force_build=False)
    try:
        assert (await sandbox.exec("mount -t tmpfs none /mnt")).return_code == 0
        assert any(line.startswith("privileged") for line in sandbox.facts.protections)
        assert not any("seccomp" in line or "no-new" in line for line in sandbox.facts.protections)
    finally:
        await sandbox.stop(delete=True)


async def test_several_services_are_refused_with_the_reason(workplace: Workplace) -> None:
    with pytest.raises(InvalidInput, match="several services"):
        _with_compose(workplace, COMPOSE + "  database:\n    image: postgres:16\n")


async def test_probe_finds_this_machine_in_order(workplace: Workplace) -> None:
    findings = await probe(SandboxOptions(cache=workplace.cache))
    assert [finding.name for finding in findings if finding.needed and not finding.ok] == []
    assert {"container runtime", "seccomp profile", "buildah"} <= {finding.name for finding in findings}


async def test_stop_without_start_and_twice(workplace: Workplace, tmp_path: Path) -> None:
    sandbox = workplace.sandbox()
    await sandbox.stop(delete=True)
    await sandbox.start(force_build=False)
    await sandbox.stop(delete=True)
    await sandbox.stop(delete=True)


def _of_task(workplace: Workplace, task_toml: str, **options: object) -> OciEnvironment:
    """A sandbox as Harbor makes it from a task's own file."""
    made = workplace.sandbox()
    environment = TaskConfig.model_validate_toml(task_toml).environment
    return OciEnvironment(
        environment_dir=made.environment_dir,
        environment_name="suite",
        session_id="suite__env",
        trial_paths=made.trial_paths,
        task_env_config=environment,
        network_policy=environment.resolve_baseline(),
        options=workplace.options(**options),
        owner={"install": workplace.install},
    )


@pytest.mark.parametrize(
    ("task_toml", "operators", "expected"),
    [
        ("[environment]\n", "none", "no-network"),
        ("[environment]\n", "bridge", "public (NAT)"),
        ("[environment]\nnetwork_mode = 'public'\n", "none", "public (NAT)"),
        ("[environment]\nnetwork_mode = 'no-network'\n", "bridge", "no-network"),
    ],
)
async def test_the_operators_network_is_for_tasks_that_say_nothing(
    workplace: Workplace, task_toml: str, operators: str, expected: str
) -> None:
    sandbox = _of_task(workplace, task_toml, network_mode=operators)
    await sandbox.start(force_build=False)
    try:
        assert sandbox.facts.network == expected
    finally:
        await sandbox.stop(delete=True)


async def test_the_machines_own_network_needs_the_operators_word(workplace: Workplace) -> None:
    closed = _of_task(workplace, "[environment]\n", network_mode="host")
    with pytest.raises(InvalidInput, match="ALLOW_HOST_NETWORK"):
        await closed.start(force_build=False)
    await closed.stop(delete=True)
    allowed = _of_task(workplace, "[environment]\n", network_mode="host", allow_host_network=True)
    await allowed.start(force_build=False)
    try:
        assert "host" in allowed.facts.network
    finally:
        await allowed.stop(delete=True)


async def test_a_compose_file_without_a_network_has_none_whatever_the_operators_default(workplace: Workplace) -> None:
    """Its twin above has the machine's own: the compose file makes the difference."""
    host = {"network_mode": "host", "allow_host_network": True}
    sandbox = workplace.sandbox(compose=COMPOSE + "    network_mode: none\n", options=host, network=NetworkPolicy())
    await sandbox.start(force_build=False)
    try:
        assert sandbox.facts.network == "no-network"
    finally:
        await sandbox.stop(delete=True)
