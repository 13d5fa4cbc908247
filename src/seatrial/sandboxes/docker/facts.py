"""What was really applied to a docker sandbox, as the engine reports it. For the trial's lock."""

from __future__ import annotations

from typing import Any

from seatrial.sandboxes.docker.container import Container
from seatrial.sandboxes.docker.sandbox_container import SandboxContainer
from seatrial.sandboxes.facts import SandboxFacts


def facts_of(sandbox: SandboxContainer | None) -> SandboxFacts:
    """Nothing is claimed before the sandbox runs."""
    if sandbox is None or not sandbox.container.applied:
        return SandboxFacts()
    container, network = sandbox.container, sandbox.network
    return SandboxFacts(
        limits={**_limits(container), **_storage(sandbox)},
        network=network.description,
        protections=_protections(sandbox),
        not_applied=(*_not_applied(container), *network.not_applied),
        memory_killed=sandbox.memory_killed,
        strain=sandbox.strain,
        suspicions=sandbox.suspicions,
    )


def _limits(container: Container) -> dict[str, Any]:
    """Those that the engine took: one that its kernel cannot enforce comes back as nothing."""
    applied = container.applied
    limits: dict[str, Any] = {}
    if applied.get("NanoCpus"):
        limits["cpus"] = applied["NanoCpus"] / 1e9
    if applied.get("Memory"):
        limits["memory_mb"] = applied["Memory"] >> 20
    if applied.get("PidsLimit"):
        limits["pids"] = applied["PidsLimit"]
    return limits


def _storage(sandbox: SandboxContainer) -> dict[str, Any]:
    container, storage = sandbox.container, sandbox.storage
    limits = {"storage_mb": container.plan.storage_mb} if storage is not None or container.has_quota else {}
    if storage is not None and storage.exceeded_mb:
        limits["storage_exceeded_mb"] = storage.exceeded_mb
    return limits


def _protections(sandbox: SandboxContainer) -> tuple[str, ...]:
    container, applied = sandbox.container, sandbox.container.applied
    stored = ["storage: quota, the engine's own"] if container.has_quota else []
    stored += [sandbox.gauge.description] if sandbox.gauge is not None else []
    if applied.get("Privileged"):
        return ("privileged: the machine's own rights, as the operator allowed", *stored)
    lines = [f"capabilities: {len(applied.get('CapAdd') or ())} of Docker's default 14"]
    if container.profiles.description:
        lines.append(container.profiles.description)
    lines += [line for line in applied.get("SecurityOpt") or () if line.startswith("no-new-privileges")]
    lines.append("device nodes: the engine's filter" + (", root mounted nodev" if container.forbids_devices else ""))
    if applied.get("MaskedPaths"):
        lines.append("masked and read-only paths")
    if container.plan.guards_tests:
        lines.append("grading: own mount namespace, out of the agent's reach")
    return (*lines, *stored)


def _not_applied(container: Container) -> tuple[str, ...]:
    wanted = {"cpus": "cpu limit", "memory_mb": "memory limit", "pids": "limit of processes"}
    limits = _limits(container)
    lines = [f"{what}: the engine cannot enforce it" for name, what in wanted.items() if name not in limits]
    if container.applied.get("Privileged"):
        lines.append("capabilities, seccomp, no-new-privileges, isolated grading: the task is privileged")
    else:
        lines += container.profiles.not_applied
    if container.layers is None and container.plan.guards_tests:
        lines.append("storage limit of /logs and /tests: the engine does not report how full its volumes are")
    return (*lines, *container.plan.asked.not_applied, *container.warnings)
