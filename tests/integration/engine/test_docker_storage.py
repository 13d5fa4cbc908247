"""The storage limit of a docker sandbox whose files are elsewhere, and the quota of an engine that has one.

The limit on this machine's engine is in ``tests/faults/test_abuse.py``."""

from __future__ import annotations

from typing import Any

import pytest
from harbor.models.task.config import EnvironmentConfig

from seatrial.errors import SandboxFault
from seatrial.sandboxes.compose import ComposeService
from seatrial.sandboxes.docker.client import EngineRefused
from seatrial.sandboxes.docker.container import Container, ContainerPlan
from seatrial.sandboxes.docker.seccomp import Profiles
from seatrial.sandboxes.images.image import Image, ImageConfig
from seatrial.sandboxes.options import Owner
from seatrial.sandboxes.record import SandboxRecord
from tests.integration.engine.test_docker import Bench, bench, elsewhere
from tests.waiting import eventually

__all__ = ["bench"]

SMALL = EnvironmentConfig(cpus=1, memory_mb=256, storage_mb=200)


@pytest.mark.engine
async def test_engine_elsewhere_is_asked(bench: Bench) -> None:
    sandbox = bench.sandbox(is_local=elsewhere, task_env_config=SMALL)
    await sandbox.start(force_build=False)
    try:
        assert (await sandbox.exec("fallocate -l 100M /fine; sleep 7; echo fine")).stdout == "fine\n"
        facts = sandbox.facts
        assert facts.limits["storage_mb"] == 200 and "storage_exceeded_mb" not in facts.limits
        assert [line for line in facts.not_applied if line.startswith("storage limit of /logs")]
        assert (await sandbox.exec("fallocate -l 200M /more; sleep 600")).return_code == 137
        assert sandbox.facts.limits["storage_exceeded_mb"] >= 300
        assert (await sandbox.exec("echo usable")).stdout == "usable\n"
        with pytest.raises(SandboxFault, match="storage limit is 200 MB"):
            await sandbox.exec("fallocate -l 300M /huge; sleep 600")
        with pytest.raises(SandboxFault, match="storage limit is 200 MB"):
            await sandbox.exec("echo not here any more")
    finally:
        await sandbox.stop(delete=True)


@pytest.mark.engine
async def test_volumes_count_and_daemons_are_killed_too(bench: Bench) -> None:
    sandbox = bench.sandbox(task_env_config=SMALL)
    await sandbox.start(force_build=False)
    try:
        assert "storage: watched, offenders are killed" in sandbox.facts.protections
        await sandbox.exec("setsid sh -c 'fallocate -l 250M /logs/full; sleep 600' > /dev/null 2>&1 &")
        await eventually(lambda: "storage_exceeded_mb" in sandbox.facts.limits, "the offender was found")
        assert (await sandbox.exec("cat /proc/[0-9]*/comm")).stdout.split().count("sleep") == 1  # the sandbox's own
    finally:
        await sandbox.stop(delete=True)


class QuotaEngine:
    """An engine that has quotas, or says so and has none."""

    def __init__(self, refusal: str = "") -> None:
        self.asked: list[dict[str, Any]] = []
        self._refusal = refusal

    async def post(self, path: str, body: dict[str, Any], **query: Any) -> dict[str, Any]:
        self.asked.append(body["HostConfig"].get("StorageOpt"))
        if self._refusal and body["HostConfig"].get("StorageOpt"):
            raise EngineRefused(500, self._refusal)
        return {"Id": "1234"}


def _container(engine: QuotaEngine) -> Container:
    image = Image(reference="x", digest="sha256:1", source="local", config=ImageConfig())
    plan = ContainerPlan(
        name="x",
        image=image,
        record=SandboxRecord.new("x", Owner()),
        env={},
        cpus=1,
        memory_mb=64,
        pids=64,
        storage_mb=300,
        service=ComposeService(name="main"),
    )
    return Container(engine, plan)  # type: ignore[arg-type]


XFS = {"Driver": "overlay2", "DriverStatus": [["Backing Filesystem", "xfs"], ["Native Overlay Diff", "true"]]}
EXT = {"Driver": "overlay2", "DriverStatus": [["Backing Filesystem", "extfs"]]}


@pytest.mark.parametrize(
    ("info", "refusal", "asked"),
    [
        (XFS, "", [{"size": "300M"}]),
        (
            XFS,
            "--storage-opt is supported only for overlay over xfs with 'pquota' mount option",
            [{"size": "300M"}, None],
        ),
        (EXT, "", [None]),
    ],
    ids=["quota", "mounted without", "another file system"],
)
async def test_quota_is_asked_for_where_it_may_be_had(info: dict[str, Any], refusal: str, asked: list[Any]) -> None:
    engine = QuotaEngine(refusal)
    container = _container(engine)
    await container.create({"NetworkMode": "none"}, info, Profiles({}, None))
    assert engine.asked == asked and container.id == "1234"
