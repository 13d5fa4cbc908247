"""What was really applied to one daemonless sandbox, for the trial's lock."""

from __future__ import annotations

from typing import Any

from seatrial.sandboxes.facts import SandboxFacts
from seatrial.sandboxes.host.seccomp import PROFILE
from seatrial.sandboxes.oci.gvisor.runsc import PLATFORM
from seatrial.sandboxes.oci.machine import Machine
from seatrial.sandboxes.oci.pod import Pod

_STORAGE = {
    "image": "image, a file system of its own that ends at the limit",
    "watched": "watched, offenders are killed",
}


def facts_of(
    machine: Machine,
    pod: Pod | None,
    *,
    network: str,
    suspicions: tuple[str, ...],
    storage_exceeded_mb: int,
) -> SandboxFacts:
    """Nothing is claimed before the sandbox runs."""
    if pod is None or not pod.findings.started:
        return SandboxFacts(not_applied=tuple(pod.findings.not_applied) if pod is not None else ())
    return SandboxFacts(
        limits=_limits(pod, storage_exceeded_mb),
        network=network,
        protections=_protections(machine, pod),
        not_applied=_not_applied(pod),
        memory_killed=pod.findings.memory_killed or pod.cgroups.memory_kills > 0,
        strain=pod.findings.strain or pod.cgroups.strain,
        suspicions=suspicions,
    )


def _limits(pod: Pod, storage_exceeded_mb: int) -> dict[str, Any]:
    limits: dict[str, Any] = {"storage_mb": pod.plan.limits.storage_mb}
    if pod.findings.limited:
        limits |= pod.plan.limits.model_dump()
    if storage_exceeded_mb:
        limits["storage_exceeded_mb"] = storage_exceeded_mb
    return limits


def _protections(machine: Machine, pod: Pod) -> tuple[str, ...]:
    count = len(pod.confinement.capabilities)
    lines = [f"runtime: {machine.runtime.version}", f"root: {pod.findings.root}"]
    if pod.plan.privileged:
        lines.append(f"privileged: {count} capabilities, as the operator allowed")
    elif machine.runtime.is_gvisor:
        lines += [
            f"gVisor ({PLATFORM}): a kernel of its own answers the sandbox's system calls",
            f"{count} capabilities of Docker's default 14, in that kernel",
            "seccomp: gVisor's own filter towards the machine; inside, commands make no namespaces and mount nothing",
            "no-new-privileges",
        ]
    else:
        lines += [
            f"{count} capabilities of Docker's default 14",
            f"seccomp profile {PROFILE}, stricter than Docker's",
            "no-new-privileges",
            "masked and read-only paths",
        ]
    if pod.findings.limited:
        lines.append(machine.cgroups.description)
    filtered = "filtered" if machine.cgroups.filters_devices else "no CAP_MKNOD"
    lines.append(f"device nodes: {filtered}, roots mounted nodev")
    lines.append(f"storage: {_STORAGE[pod.findings.storage]}")
    lines.append("grading: own mount and process namespace, out of the agent's sight")
    return tuple(lines)


def _not_applied(pod: Pod) -> tuple[str, ...]:
    lines = list(pod.findings.not_applied)
    if pod.findings.root == "copy":
        lines.append("integrity findings: changes cannot be found without an overlay")
    return tuple(lines)
