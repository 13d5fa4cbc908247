"""What is particular to the docker sandbox: leftovers beside strangers, compose files, engines that are elsewhere."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from seatrial.errors import SandboxFault, Unsupported
from seatrial.sandboxes.compose import ComposeRefused
from seatrial.sandboxes.docker.client import EngineClient
from seatrial.sandboxes.docker.environment import DockerEnvironment
from seatrial.sandboxes.docker.leftovers import Leftovers
from seatrial.sandboxes.docker.local_container import LocalContainer, runs_here
from seatrial.sandboxes.docker.probe import probe
from seatrial.sandboxes.host.private_mounts import PrivateMounts
from seatrial.sandboxes.host.transfer import Transfer
from seatrial.sandboxes.images.assembly import assemble
from seatrial.sandboxes.options import SandboxOptions
from tests.engine import Engine
from tests.integration.engine.counting import CountingStore
from tests.waiting import LIMIT_SEC

pytestmark = pytest.mark.engine

DOCKERFILE = "FROM debian:bookworm-slim\nWORKDIR /app\n"
OFFLINE = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)

IsLocal = Callable[[str], bool]


def elsewhere(host: str) -> bool:
    """Every engine is on another machine, or we are not root."""
    return False


either_way = pytest.mark.parametrize("is_local", [runs_here, elsewhere], ids=["entered", "through the engine"])


class Bench:
    """Makes sandboxes for one test."""

    def __init__(self, directory: Path, cache: Path, engine: Engine) -> None:
        self.install = f"bench{uuid.uuid4().hex[:8]}"
        self.options = SandboxOptions(cache=cache, docker_host=engine.host)
        self._directory = directory

    def sandbox(
        self,
        compose: str = "",
        *,
        dockerfile: str = DOCKERFILE,
        options: dict[str, Any] | None = None,
        **changes: Any,
    ) -> DockerEnvironment:
        directory = self._directory / uuid.uuid4().hex[:8]
        environment = directory / "environment"
        environment.mkdir(parents=True)
        (environment / "Dockerfile").write_text(dockerfile)
        if compose:
            (environment / "docker-compose.yaml").write_text(compose)
        paths = TrialPaths(trial_dir=directory / "trial")
        paths.mkdir()
        arguments: dict[str, Any] = {
            "environment_dir": environment,
            "environment_name": "bench",
            "session_id": f"{directory.name}__env",
            "trial_paths": paths,
            "task_env_config": EnvironmentConfig(cpus=1, memory_mb=256),
            "network_policy": OFFLINE,
            "options": {**self.options.model_dump(mode="json"), **(options or {})},
            "owner": {"install": self.install, "trial": 3, "try_number": 2},
        }
        return DockerEnvironment(**{**arguments, **changes})


@pytest.fixture
def bench(tmp_path: Path, image_cache: Path, container_engine: Engine) -> Bench:
    return Bench(tmp_path, image_cache, container_engine)


async def test_strangers_survive_a_sweep(bench: Bench, container_engine: Engine) -> None:
    """Containers without our labels, and one with a label that only looks like ours."""
    sandbox = bench.sandbox()
    await sandbox.start(force_build=False)
    image = sandbox.facts.image
    async with EngineClient(container_engine.host) as engine, Leftovers.at(container_engine.host) as leftovers:
        decoys = {f"decoy-{uuid.uuid4().hex[:8]}": labels for labels in ({}, {"seatrial.record": "not of our making"})}
        try:
            for name, labels in decoys.items():
                body = {
                    "Image": image,
                    "Cmd": ["sleep", "600"],
                    "Labels": labels,
                    "HostConfig": {"NetworkMode": "none"},
                }
                await engine.post("/containers/create", body, name=name)
                await engine.post(f"/containers/{name}/start")
            removed = await leftovers.sweep(lambda record: record.owner.install == bench.install)
            assert [found.record.owner.trial for found in removed] == [3]
            for name in decoys:
                assert (await engine.get(f"/containers/{name}/json"))["State"]["Running"]
        finally:
            for name in decoys:
                await engine.delete(f"/containers/{name}", force=True)
    with pytest.raises(SandboxFault):
        await sandbox.exec("true")
    await sandbox.stop(delete=True)


async def test_no_volume_is_left(bench: Bench, container_engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test.sh").write_text("true\n")
    sandbox = bench.sandbox()
    await sandbox.start(force_build=False)
    await sandbox.upload_dir(source_dir=tmp_path / "tests", target_dir="/tests")
    async with EngineClient(container_engine.host) as engine, Leftovers.at(container_engine.host) as leftovers:
        own = [found.name for found in await leftovers.containers() if found.record.owner.install == bench.install]
        details = [await engine.get(f"/containers/{name}/json") for name in own]
        volumes = {mount["Name"] for entry in details for mount in entry["Mounts"] if mount["Type"] == "volume"}
        assert len(own) == 2 and volumes <= await _volumes(engine) and len(volumes) == 2
        await sandbox.stop(delete=True)
        assert not volumes & await _volumes(engine)


async def _volumes(engine: EngineClient) -> set[str]:
    return {entry["Name"] for entry in (await engine.get("/volumes"))["Volumes"] or []}


async def _networks(engine: EngineClient) -> set[str]:
    return {entry["Name"] for entry in await engine.get("/networks") if not entry["Name"].startswith("suite-")}


@pytest.mark.parametrize(
    ("is_local", "count"), [(runs_here, 40), (elsewhere, 12)], ids=["our router", "a bridge of the engine"]
)
async def test_many_sandboxes_of_one_new_image(
    bench: Bench, container_engine: Engine, is_local: IsLocal, count: int
) -> None:
    """FAULTS 27: one build for all of them, and no network each: an engine has addresses for some thirty."""
    store = CountingStore(container_engine.host)
    images = assemble(store, bench.options).resolver
    public, dockerfile = NetworkPolicy(network_mode=NetworkMode.PUBLIC), f"{DOCKERFILE}ENV ONLY={uuid.uuid4().hex}\n"
    sandboxes = [
        bench.sandbox(dockerfile=dockerfile, network_policy=public, images=images, is_local=is_local)
        for _ in range(count)
    ]
    async with EngineClient(container_engine.host) as engine:
        before = await _networks(engine)
        try:
            await asyncio.gather(*(sandbox.start(force_build=False) for sandbox in sandboxes))
            assert store.builds == 1
            assert len(await _networks(engine) - before) <= 1
            results = await asyncio.gather(*(sandbox.exec("echo up") for sandbox in sandboxes))
            assert [result.stdout for result in results] == ["up\n"] * count
            digest = sandboxes[0].facts.image_digest
            assert {sandbox.facts.image_digest for sandbox in sandboxes} == {digest}
        finally:
            await asyncio.gather(*(sandbox.stop(delete=True) for sandbox in sandboxes))
        assert digest is not None
        await store.remove(digest)


COMPOSE = """
services:
  client:
    build: {dockerfile: Dockerfile}
    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    command: ["sh", "-c", "echo started > /tmp/by-command; sleep infinity"]
    environment: ["TEST_DIR=${T_BENCH_TEST_DIR}"]
    working_dir: /srv
    user: "33"
    hostname: box
    tmpfs: ["/scratch:size=1m"]
    extra_hosts: ["a.example:192.0.2.7"]
    volumes: ["${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}", "${T_BENCH_TASK_AGENT_LOGS_PATH}:/agent-logs"]
"""


async def test_one_service_becomes_one_container(bench: Bench) -> None:
    sandbox = bench.sandbox(COMPOSE)
    await sandbox.start(force_build=False)
    try:
        show = "until test -s /tmp/by-command; do sleep 0.1; done; cat /tmp/by-command; echo $TEST_DIR; pwd; id -u;"
        show += "cat /proc/sys/kernel/hostname; touch /agent-logs/mine"
        result = await sandbox.exec(f"{show} && echo wrote; grep -c a.example /etc/hosts; stat -f -c %T /scratch")
        assert (result.stdout or "").split() == ["started", "/tests", "/srv", "33", "box", "wrote", "1", "tmpfs"]
    finally:
        await sandbox.stop(delete=True)


def test_several_services_are_for_another_sandbox(bench: Bench) -> None:
    with pytest.raises(Unsupported, match="harbor:docker"):
        bench.sandbox("services: {main: {image: debian}, db: {image: debian}}")


def test_escaping_compose_file_is_refused_before_anything_starts(bench: Bench) -> None:
    with pytest.raises(ComposeRefused, match="docker"):
        bench.sandbox("services: {main: {build: ., volumes: ['/var/run/docker.sock:/x']}}")


async def test_broken_sandbox_is_said(bench: Bench) -> None:
    sandbox = bench.sandbox()
    await sandbox.start(force_build=False)
    try:
        await sandbox.exec("rm -rf /bin /usr/bin /tmp/* 2>/dev/null; true")
        with pytest.raises(SandboxFault, match="broken"):
            await asyncio.wait_for(sandbox.exec("true"), LIMIT_SEC)
    finally:
        await sandbox.stop(delete=True)


async def test_allowlist_is_refused_where_it_cannot_be_enforced(bench: Bench) -> None:
    """An engine that only its address is known of cannot filter by itself; nothing is to be pretended."""
    allowlist = NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=["example.com"])
    with pytest.raises(Unsupported, match="enforced"):
        bench.sandbox(network_policy=allowlist, options={"docker_host": "tcp://192.0.2.1:2375"})
    assert bench.sandbox(network_policy=allowlist).network_policy == allowlist


async def test_bridge_of_the_engine(bench: Bench) -> None:
    """What a worker without root gets: no allowlists, and a lock that says what stays open."""
    public = NetworkPolicy(network_mode=NetworkMode.PUBLIC)
    one, other = (bench.sandbox(network_policy=public, is_local=elsewhere) for _ in range(2))
    try:
        await asyncio.gather(one.start(force_build=False), other.start(force_build=False))
        assert any("metadata" in line for line in one.facts.not_applied)
        serve = "$s=IO::Socket::INET->new(LocalPort=>81,Listen=>5); mkdir q(/up); while($c=$s->accept){print $c 1}"
        await one.exec(f"perl -MIO::Socket -e '{serve}' >/dev/null 2>&1 & until [ -d /up ]; do sleep 0.1; done")
        address = ((await one.exec("hostname -I")).stdout or "").split()[0]
        fetch = f"bash -c 'exec 3<>/dev/tcp/{address}/81 && head -c1 <&3'"
        assert (await one.exec(fetch, timeout_sec=int(LIMIT_SEC))).stdout == "1"
        assert not (await other.exec(f"timeout 3 {fetch}")).stdout
        await one.set_network_policy(OFFLINE)
        routes = "grep -c 00000000 /proc/net/route"
        assert (await one.exec(routes)).stdout == "0\n"
        assert one.facts.network == "none"
        await one.set_network_policy(public)
        assert (await one.exec(routes)).stdout != "0\n"
    finally:
        await asyncio.gather(one.stop(delete=True), other.stop(delete=True))


@either_way
async def test_files_are_the_same_either_way(bench: Bench, tmp_path: Path, is_local: IsLocal) -> None:
    """As root on the engine's machine a sandbox is entered; everybody else has the engine's archives and commands."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test.sh").write_text("#!/bin/bash\nid -un > /logs/verifier/who; cat /app/given\n")
    (tests / "test.sh").chmod(0o644)
    (tmp_path / "given").write_text("something\n")
    agent = {"type": "bind", "source": str(tmp_path), "target": "/logs/agent"}
    sandbox = bench.sandbox(mounts=[agent], is_local=is_local)
    await sandbox.start(force_build=False)
    try:
        await sandbox.upload_file(tmp_path / "given", "/app/given")
        assert [await sandbox.is_dir(path) for path in ("/logs/agent", "/app/given", "/none")] == [True, False, False]
        assert [await sandbox.is_file(path) for path in ("/logs/agent", "/app/given", "/none")] == [False, True, False]
        assert (await sandbox.exec("stat -c '%a %U' /logs/agent /app/given")).stdout == "777 root\n644 root\n"
        assert (await sandbox.exec("chmod +x /none")).return_code == 1
        assert not await sandbox.is_file("/tests/test.sh")
        await sandbox.upload_dir(tests, "/tests")
        assert (await sandbox.exec("/tests/test.sh")).return_code == 126
        assert (await sandbox.exec("chmod +x /tests/test.sh")).return_code == 0
        assert (await sandbox.exec("/tests/test.sh")).stdout == "something\n"
        assert (await sandbox.exec("/tests/test.sh", user="nobody")).return_code == 0
        await sandbox.download_dir("/logs/verifier", tmp_path / "out")
        assert (tmp_path / "out" / "who").read_text() == "root\n"
        with pytest.raises(FileNotFoundError):
            await sandbox.download_file("/logs/verifier/none", tmp_path / "none")
        assert not sandbox.facts.memory_killed
    finally:
        await sandbox.stop(delete=True)


@either_way
async def test_memory_kill_is_seen_either_way(bench: Bench, is_local: IsLocal) -> None:
    sandbox = bench.sandbox(is_local=is_local)
    await sandbox.start(force_build=False)
    try:
        await sandbox.exec("kill -9 $$")
        assert not sandbox.facts.memory_killed
        await sandbox.exec("perl -e '$x = \"a\" x (600 << 20)'")
        assert sandbox.facts.memory_killed
    finally:
        await sandbox.stop(delete=True)


async def test_other_users_rights_are_a_commands_matter(bench: Bench, tmp_path: Path) -> None:
    """What root may do is done without a process; for others the sandbox's kernel decides."""
    (tmp_path / "script").write_text("true\n")
    (tmp_path / "script").chmod(0o600)
    sandbox = bench.sandbox()
    await sandbox.start(force_build=False)
    try:
        await sandbox.upload_file(tmp_path / "script", "/root/script")
        assert not await sandbox.is_file("/root/script", user="nobody")
        assert (await sandbox.exec("chmod +x /root/script", user="nobody")).return_code == 1
        assert (await sandbox.exec("stat -c %a /root/script")).stdout == "600\n"
        assert (await sandbox.exec("chmod +x /root/script")).return_code == 0
        assert (await sandbox.exec("stat -c %a /root/script")).stdout == "711\n"
    finally:
        await sandbox.stop(delete=True)


async def test_files_come_out_of_a_broken_sandbox(bench: Bench, tmp_path: Path) -> None:
    sandbox = bench.sandbox()
    await sandbox.start(force_build=False)
    try:
        await sandbox.exec("echo kept > /logs/log; rm -rf /bin /usr/bin 2>/dev/null; true")
        await sandbox.download_dir("/logs", tmp_path / "out")
        assert (tmp_path / "out" / "log").read_text() == "kept\n"
    finally:
        await sandbox.stop(delete=True)


async def test_only_the_right_process_is_entered(bench: Bench, container_engine: Engine) -> None:
    """Process numbers are used again: a process of anything but the named container is none to enter."""
    sandbox = bench.sandbox()
    await sandbox.start(force_build=False)
    mounts = PrivateMounts()
    try:
        async with EngineClient(container_engine.host) as engine, Leftovers.at(container_engine.host) as leftovers:
            own = [found.name for found in await leftovers.containers() if found.record.owner.install == bench.install]
            found = await engine.get(f"/containers/{own[0]}/json")
        name, pid = found["Id"], found["State"]["Pid"]
        assert LocalContainer.found(mounts, name, os.getpid()) is None
        assert LocalContainer.found(mounts, "0" * 64, pid) is None
        local = LocalContainer.found(mounts, name, pid)
        assert local is not None and local.alive
        view = local.view_of(1, name)
        assert view is not None and await view.start(Transfer.is_dir, "/logs")
        assert local.view_of(1, "0" * 64) is None
        view.close()
        with pytest.raises(SandboxFault, match="gone"):
            await view.start(Transfer.is_dir, "/logs")
        await sandbox.stop(delete=True)
        assert not local.alive
        with pytest.raises(SandboxFault, match="gone"):
            await local.view.start(Transfer.is_dir, "/logs")
        local.close()
        local.close()
        assert not local.alive
    finally:
        await sandbox.stop(delete=True)


async def test_probe(bench: Bench, tmp_path: Path) -> None:
    assert all(finding.ok for finding in await probe(bench.options))
    absent = bench.options.model_copy(update={"docker_host": f"unix://{tmp_path}/nothing.sock"})
    findings = {finding.name: finding for finding in await probe(absent)}
    assert not findings["container engine"].ok and findings["container engine"].fix


@pytest.mark.parametrize(("network_mode", "expected"), [("none", "no-network"), ("bridge", "host")])
async def test_a_compose_file_without_a_network_has_none_whatever_the_operators_default(
    bench: Bench, network_mode: str, expected: str
) -> None:
    """Any other network mode of a compose file leaves it to the operator: here the machine's own network."""
    compose = f"services: {{box: {{build: ., network_mode: {network_mode}}}}}"
    host = {"network_mode": "host", "allow_host_network": True}
    sandbox = bench.sandbox(compose, options=host, network_policy=NetworkPolicy())
    await sandbox.start(force_build=False)
    try:
        assert sandbox.facts.network.startswith(expected)
    finally:
        await sandbox.stop(delete=True)
