"""Sandboxes and whole Harbor trials on a sandbox of ours, for tests of what happens inside."""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.config import AgentConfig, TrialConfig
from harbor.models.trial.config import EnvironmentConfig as TrialEnvironment
from harbor.models.trial.config import TaskConfig as TrialTask
from harbor.models.trial.paths import TrialPaths
from harbor.models.trial.result import TrialResult
from harbor.trial.trial import Trial

from seatrial.sandboxes.docker.environment import DockerEnvironment
from seatrial.sandboxes.facts import SandboxFacts
from seatrial.sandboxes.oci.environment import OciEnvironment
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.sandbox import Sandbox
from tests.engine import Engine

IMPORT_PATH = "seatrial.sandboxes.oci:OciEnvironment"
DOCKER_PATH = "seatrial.sandboxes.docker:DockerEnvironment"
DOCKERFILE = "FROM debian:bookworm-slim\nRUN useradd --create-home --uid 1234 agent\nWORKDIR /app\n"
OFFLINE = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)

_TASK = """schema_version = "1.4"
[task]
name = "tests/{name}"
[agent]
timeout_sec = {agent_timeout}
[verifier]
timeout_sec = 60.0
[environment]
build_timeout_sec = 600.0
cpus = 1
memory_mb = 512
network_mode = "no-network"
"""


def test_cache() -> Path:
    """Images stay between runs: making a Debian takes half a minute."""
    path = Path(os.environ.get("SEATRIAL_TEST_CACHE", "/var/tmp/seatrial-test-cache"))
    path.mkdir(parents=True, exist_ok=True)
    return path


test_cache.__test__ = False  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Workplace:
    """Where one test's sandboxes keep their things."""

    directory: Path
    cache: Path
    engine: Engine | None = None
    """Where there is one, sandboxes are its containers; else they are daemonless."""
    install: str = field(default_factory=lambda: f"test{uuid.uuid4().hex[:8]}")

    @property
    def run_dir(self) -> Path:
        return self.cache / "run"

    def options(self, **changes: Any) -> dict[str, Any]:
        host = self.engine.host if self.engine is not None else ""
        return SandboxOptions(cache=self.cache, docker_host=host, **changes).model_dump(mode="json")

    @property
    def kind(self) -> str:
        """As ``--sandbox`` names it."""
        return "oci" if self.engine is None else "docker"

    @property
    def import_path(self) -> str:
        return IMPORT_PATH if self.engine is None else DOCKER_PATH

    def sandbox(
        self,
        *,
        options: dict[str, Any] | None = None,
        given: dict[str, Any] | None = None,
        compose: str = "",
        network: NetworkPolicy = OFFLINE,
        **changes: Any,
    ) -> Sandbox:
        """One that has not been started. ``changes`` go to the task's environment configuration, ``given`` are
        collaborators."""
        directory = self.directory / uuid.uuid4().hex[:8]
        environment = directory / "environment"
        environment.mkdir(parents=True)
        (environment / "Dockerfile").write_text(DOCKERFILE)
        if compose:
            (environment / "docker-compose.yaml").write_text(compose)
        paths = TrialPaths(trial_dir=directory / "trial")
        paths.mkdir()
        kind = OciEnvironment if self.engine is None else DockerEnvironment
        return kind(
            environment_dir=environment,
            environment_name="suite",
            session_id=f"{directory.name}__env",
            trial_paths=paths,
            task_env_config=EnvironmentConfig(**{"cpus": 1, "memory_mb": 512, **changes}),
            network_policy=network,
            options=self.options(**(options or {})),
            owner={"install": self.install, "trial": 7, "try_number": 1},
            **(given or {}),
        )

    def task(self, solve: str, test: str, *, agent_timeout: float = 120.0) -> Path:
        root = self.directory / f"task-{uuid.uuid4().hex[:8]}"
        files = {
            "task.toml": _TASK.format(name=root.name, agent_timeout=agent_timeout),
            "instruction.md": "Do it.\n",
            "environment/Dockerfile": DOCKERFILE,
            "solution/solve.sh": f"#!/bin/bash\n{solve}\n",
            "tests/test.sh": f"#!/bin/bash\n{test}\n",
        }
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return root

    async def run(self, task: Path) -> Outcome:
        """A trial as Harbor runs it, with the task's own solution as the agent."""
        config = TrialConfig(
            task=TrialTask(path=task),
            trials_dir=self.directory / "trials",
            trial_name=f"trial-{uuid.uuid4().hex[:8]}",
            agent=AgentConfig(name="oracle"),
            environment=TrialEnvironment(
                import_path=self.import_path,
                kwargs={"options": self.options(), "owner": {"install": self.install, "trial": 7, "try_number": 1}},
            ),
        )
        trial = await Trial.create(config)
        result = await trial.run()
        return Outcome(result, trial.agent_environment.facts, self.directory / "trials" / config.trial_name)


@dataclass(frozen=True)
class Outcome:
    result: TrialResult
    facts: SandboxFacts
    directory: Path

    @property
    def reward(self) -> float | None:
        rewards = self.result.verifier_result.rewards if self.result.verifier_result else None
        return rewards.get("reward") if rewards else None

    @property
    def error(self) -> str:
        return self.result.exception_info.exception_type if self.result.exception_info else ""
