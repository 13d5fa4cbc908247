"""What was really done for a docker sandbox, from the engine's own account of it. ``docker`` asks."""

from __future__ import annotations

from typing import Any

from seatrial.sandboxes.engine.container import Container
from seatrial.sandboxes.engine.network import EngineNetwork
from seatrial.sandboxes.image import Image
from seatrial.sandboxes.sandbox import SandboxFacts


def facts_of(
    image: Image | None, container: Container | None, network: EngineNetwork | None, *, memory_killed: bool
) -> SandboxFacts:
    """Nothing is claimed before the sandbox runs."""
    named: dict[str, Any] = {}
    if image is not None:
        named = {"image": image.reference, "image_digest": image.digest, "image_source": image.provenance}
    if container is None or not container.applied:
        return SandboxFacts(**named)
    return SandboxFacts(
        **named,
        limits=_limits(container),
        network=network.description if network is not None else "",
        protections=_protections(container),
        not_applied=(*_not_applied(container), *(network.not_applied if network is not None else ())),
        memory_killed=memory_killed,
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


def _seccomp(container: Container) -> bool:
    return any(option.startswith("name=seccomp") and "unconfined" not in option for option in container.security)


def _protections(container: Container) -> tuple[str, ...]:
    applied = container.applied
    if applied.get("Privileged"):
        return ("privileged: the machine's own rights, as the operator allowed",)
    lines = [f"capabilities: {len(applied.get('CapAdd') or ())} of Docker's default 14"]
    if _seccomp(container):
        lines.append("seccomp: the engine's default profile")
    lines += [line for line in applied.get("SecurityOpt") or () if line.startswith("no-new-privileges")]
    if applied.get("MaskedPaths"):
        lines.append("masked and read-only paths")
    if container.plan.guards_tests:
        lines.append("grading: own mount namespace, out of the agent's reach")
    return tuple(lines)


def _not_applied(container: Container) -> tuple[str, ...]:
    wanted = {"cpus": "cpu limit", "memory_mb": "memory limit", "pids": "limit of processes"}
    limits = _limits(container)
    lines = [f"{what}: the engine cannot enforce it" for name, what in wanted.items() if name not in limits]
    if container.applied.get("Privileged"):
        lines.append("capabilities, seccomp, no-new-privileges, isolated grading: the task is privileged")
    elif not _seccomp(container):
        lines.append("seccomp: the engine has none")
    lines.append("storage limit: the engine has none for single containers")
    lines.append("integrity findings: changes are not looked at in an engine")
    return (*lines, *container.warnings)
