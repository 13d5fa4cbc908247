"""An agent without a kit is installed once for each image, in a sandbox of its own. Others start with the result."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from seatrial.agents.kits.layers import AgentLayers, Layered
from seatrial.sandboxes.docker.images import EngineStore
from seatrial.sandboxes.sandbox import Sandbox
from tests.trials import Workplace
from tests.workplace_fixture import DOCKER, OCI, container_engine, image_cache, run_dir

__all__ = ["container_engine", "image_cache", "run_dir"]


@pytest.fixture(params=[OCI, DOCKER])
def workplace(request: pytest.FixtureRequest, tmp_path: Path, image_cache: Path) -> Workplace:
    """Its images are shared. Its layers are not: other tests make some meanwhile, and these tests remove them all."""
    engine = request.getfixturevalue("container_engine") if request.param == "docker" else None
    own = tmp_path / "cache"
    own.mkdir()
    (own / "images").symlink_to(image_cache / "images")
    return Workplace(tmp_path, own, engine)


class Installed:
    """The part of Harbor's installed agent that a layer changes."""

    def __init__(self, told: list[str], script: str = "") -> None:
        self._version: str | None = None
        self._told = told
        self._script = script or (
            "mkdir -p /opt/agent && echo run > /opt/agent/run && rm -rf /etc/cron.d && mkdir /etc/cron.d"
            " && rm /etc/debian_version && mknod /opt/agent/node c 1 8; true"
        )

    async def install(self, environment: Any) -> None:
        self._told.append(environment.session_id)
        done = await environment.exec(self._script, user="root")
        if done.return_code:
            raise RuntimeError(f"the installation failed: {done.return_code}")

    def get_version_command(self) -> str:
        return "echo agent 3.2.1"

    def parse_version(self, stdout: str) -> str:
        return stdout.split()[-1]


def dressed(layers: AgentLayers, sandbox: Sandbox, agent: Installed, facts: str = "options") -> Layered:
    layered = Layered(layers, agent, sandbox, facts, "own-agent")
    sandbox.add_layer = layered.add_layer
    return layered


async def test_an_installation_is_done_once_and_seen_by_all(workplace: Workplace, tmp_path: Path) -> None:
    """Three at once on two workers, then one more: what was added, deleted and replaced is there for each."""
    told: list[str] = []
    kits = workplace.cache / "kits"
    remove_image = EngineStore(workplace.engine.host if workplace.engine else "").remove
    workers = [AgentLayers(kits, remove_image=remove_image), AgentLayers(kits, remove_image=remove_image)]
    before = {folder.name for folder, _ in workers[0].kept()}
    base = workplace.sandbox()
    await base.start(force_build=False)
    entries = int((await base.exec("ls -A /etc/cron.d | wc -l")).stdout or 0)
    await base.stop(delete=True)
    marker = f"echo {tmp_path} > /opt/agent/marker"  # so that no earlier run has made it
    script = f"{Installed(told)._script[:-6]} ; {marker}"
    agents = [Installed(told, script) for _ in range(3)]
    facts = str(tmp_path)
    sandboxes = [workplace.sandbox() for _ in agents]
    layered = [
        Layered(workers[number % 2], agent, sandbox, facts, "own-agent")
        for number, (agent, sandbox) in enumerate(zip(agents, sandboxes, strict=True))
    ]
    for each, sandbox in zip(layered, sandboxes, strict=True):
        sandbox.add_layer = each.add_layer
    try:
        await asyncio.gather(*(sandbox.start(force_build=False) for sandbox in sandboxes))
        for agent, sandbox in zip(agents, sandboxes, strict=True):
            await agent.install(sandbox)
        assert len(told) == 1, "and not in a sandbox of a trial"
        assert not {sandbox.session_id for sandbox in sandboxes} & set(told)
        for each, agent, sandbox in zip(layered, agents, sandboxes, strict=True):
            assert each.notes == [] and each.layer is not None and each.layer.version == "3.2.1"
            assert agent._version == "3.2.1"
            seen = await sandbox.exec("cat /opt/agent/run /opt/agent/marker; ls -A /etc/cron.d | wc -l")
            assert (seen.stdout or "").split() == ["run", str(tmp_path), "0"], entries
            assert (await sandbox.exec("test -e /etc/debian_version")).return_code == 1
            # An engine commits device nodes, too. They cannot be opened: the root is mounted without devices.
            assert (await sandbox.exec("head -c1 /opt/agent/node")).return_code == 1
            assert sandbox.facts.image_digest == each.layer.image
        # What one trial writes there, another one does not see.
        await sandboxes[0].exec("echo changed > /opt/agent/run; rm /opt/agent/marker", user="root")
        assert (await sandboxes[1].exec("cat /opt/agent/run")).stdout == "run\n"
        await sandboxes[0].begin_grading()
        assert sandboxes[0].facts.suspicions == (), "what the installation changed is the image's"
    finally:
        for sandbox in sandboxes:
            await sandbox.stop(delete=True)
    again = workplace.sandbox()
    later = Layered(AgentLayers(kits), Installed(told, script), again, facts, "own-agent")
    again.add_layer = later.add_layer
    try:
        await again.start(force_build=False)
        assert len(told) == 1
        assert (await again.exec("cat /opt/agent/run")).stdout == "run\n"
        (new,) = [folder for folder, _ in workers[0].kept() if folder.name not in before]
        assert [layer.name for layer in await workers[0].prune(everything=True) if layer.name == new.name] == []
    finally:
        await again.stop(delete=True)
    removed = await workers[0].prune(everything=True)
    (gone,) = [layer for layer in removed if layer.name == new.name]
    assert gone.size_bytes > 0 and not new.exists()
    if workplace.engine is not None:
        assert await EngineStore(workplace.engine.host).find(gone.kept) is None


async def test_an_installation_that_fails_is_left_to_the_trial(workplace: Workplace, tmp_path: Path) -> None:
    """It is not tried again for each of the next trials beforehand, and leaves nothing."""
    told: list[str] = []
    layers = AgentLayers(tmp_path / "kits")
    sandbox = workplace.sandbox()
    layered = dressed(layers, sandbox, Installed(told, "exit 3"))
    try:
        await sandbox.start(force_build=False)
        assert layered.notes == ["agent layer: the installation failed: 3"] and layered.layer is None
        assert len(told) == 1 and layers.kept() == []
        assert await layers.get(layered, sandbox._started_image, layered.agent.install) is None
        assert list((tmp_path / "kits" / "layers").glob(".making-*")) == []
    finally:
        await sandbox.stop(delete=True)


async def test_nothing_of_one_task_gets_into_the_layer_of_another(workplace: Workplace, tmp_path: Path) -> None:
    """Both name the same image. The first one brings files and variables that would change the installation."""
    told: list[str] = []
    layers = AgentLayers(workplace.cache / "kits")
    script = 'mkdir -p /opt/agent; ls /usr/local/bin > /opt/agent/seen; echo "$SOURCE" >> /opt/agent/seen'
    hostile = _of_ready_image(workplace, env={"SOURCE": "of-the-first"}, workdir="/usr/local/bin")
    (hostile.environment_dir / "curl").write_text("#!/bin/sh\n")
    twins = [_of_ready_image(workplace), _of_ready_image(workplace)]
    sandboxes = [hostile, *twins]
    layered = [dressed(layers, sandbox, Installed(told, script), str(tmp_path)) for sandbox in sandboxes]
    try:
        for sandbox in sandboxes:
            await sandbox.start(force_build=False)
        assert [each.notes for each in layered] == [[], [], []]
        assert (await hostile.exec("test -e /usr/local/bin/curl")).return_code == 0, "its own sandbox has its files"
        assert (await hostile.exec("cat /opt/agent/seen")).stdout == "of-the-first\n", "but not the installation"
        for twin in twins:
            assert (await twin.exec("cat /opt/agent/seen; ls -A /usr/local/bin; env | grep SOURCE")).stdout == "\n"
        assert len(told) == 2, "the other two share one"
    finally:
        for sandbox in sandboxes:
            await sandbox.stop(delete=True)


def _of_ready_image(workplace: Workplace, **changes: Any) -> Sandbox:
    sandbox = workplace.sandbox(docker_image="debian:bookworm-slim", **changes)
    (sandbox.environment_dir / "Dockerfile").unlink()
    return sandbox
