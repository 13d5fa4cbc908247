"""Turns an order into Harbor's configuration, without secrets: Harbor writes it into the trial's directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig, VerifierConfig

from seatrial.domain.agents.agent_options import file_options
from seatrial.domain.task import Task, TaskFormat
from seatrial.errors import InvalidInput
from seatrial.ports.runner import Order
from seatrial.sandboxes.options import Owner, SandboxOptions

OUR_SANDBOXES = {
    "oci": "seatrial.sandboxes.oci:OciEnvironment",
    "docker": "seatrial.sandboxes.docker:DockerEnvironment",
}
OUR_AGENTS = {"mini-swe-agent": "seatrial.agents.mini_swe_agent:OfflineMiniSweAgent"}
"""Replacements of Harbor's agents that install from this machine instead of the internet, for sandboxes that are not
ours. In ours, every agent that has a kit gets it (``agents.kits``)."""


def trial_config(order: Order, sandbox: str, agent: AgentConfig, owner: Owner, options: SandboxOptions) -> TrialConfig:
    return TrialConfig(
        task=TaskConfig(path=order.task_dir),
        trials_dir=order.work_dir.parent,
        trial_name=order.work_dir.name,
        timeout_multiplier=order.job.timeout_multiplier,
        agent=agent,
        verifier=VerifierConfig(env=verifier_env(order.task, order.job.timeout_multiplier)),
        environment=environment_config(sandbox, order.job.force_build, owner, options),
    )


def verifier_env(task: Task, multiplier: float) -> dict[str, str]:
    """The test script of a Terminal-Bench 1 task applies its time limit itself, so it needs the multiplied one."""
    limit = task.verifier_timeout_sec
    if task.format is not TaskFormat.TERMINAL_BENCH_1 or limit is None or multiplier == 1:
        return {}
    return {"SEATRIAL_TEST_TIMEOUT_SEC": str(round(limit * multiplier))}


def environment_config(sandbox: str, force_build: bool, owner: Owner, options: SandboxOptions) -> EnvironmentConfig:
    """``oci`` and ``docker`` are Seatrial's, ``harbor:<type>`` is Harbor's, ``pkg.mod:Class`` is the user's."""
    if sandbox in OUR_SANDBOXES:
        ours: dict[str, Any] = {"owner": owner.model_dump(mode="json"), "options": options.model_dump(mode="json")}
        return EnvironmentConfig(import_path=OUR_SANDBOXES[sandbox], force_build=force_build, kwargs=ours)
    kind, _, rest = sandbox.partition(":")
    if kind == "harbor" and rest:
        try:
            return EnvironmentConfig(type=rest, force_build=force_build)
        except ValueError as error:
            raise InvalidInput(f"Harbor has no environment {rest!r}.", field="sandbox") from error
    if rest:
        return EnvironmentConfig(import_path=sandbox, force_build=force_build)
    raise InvalidInput(
        f"There is no sandbox {sandbox!r}.",
        field="sandbox",
        fix="Use auto, oci, docker, harbor:<environment> or pkg.mod:Class.",
    )


def agent_config(order: Order, model: str | None, options: dict[str, Any], env: dict[str, str]) -> AgentConfig:
    spec = order.agent
    path = OUR_AGENTS.get(spec.name, spec.name if ":" in spec.name else None)
    name = None if path else spec.name
    return AgentConfig(name=name, import_path=path, model_name=model, kwargs=options, env=env)


def with_files(order: Order) -> dict[str, Any]:
    """The agent's options. A file in an option is written to disk, and the option becomes its path."""
    options = dict(order.agent.options)
    for name in file_options(order.agent.name) & options.keys():
        if isinstance(options[name], Mapping) and "content" in options[name]:
            content = options[name]["content"]
            place = order.work_dir / "options" / f"{name}.yaml"
            place.parent.mkdir(exist_ok=True)
            place.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
            options[name] = str(place)
    return options
