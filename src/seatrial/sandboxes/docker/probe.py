"""Whether the docker sandbox works here, for ``doctor``, for ``--sandbox auto`` and for the stock CLI's preflight."""

from __future__ import annotations

from seatrial.errors import SeatrialError
from seatrial.sandboxes.docker import tools as docker_tools
from seatrial.sandboxes.docker.client import EngineClient
from seatrial.sandboxes.docker.local_container import runs_here
from seatrial.sandboxes.docker.network import can_route
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.selection import Finding


async def probe(options: SandboxOptions) -> list[Finding]:
    """Starts nothing and changes nothing."""
    return [*await _engine(options.docker_host), _tools(), _network(options.docker_host)]


def require() -> None:
    """``SystemExit`` with the reason where this machine lacks something that only it can bring."""
    finding = _tools()
    if not finding.ok:
        raise SystemExit(f"{finding.detail} {finding.fix}")


async def _engine(host: str) -> list[Finding]:
    async with EngineClient(host) as engine:
        try:
            info = await engine.get("/info")
        except SeatrialError as problem:
            fix = "Run: systemctl start docker (or install it: apt-get install docker.io)"
            return [Finding(name="container engine", ok=False, detail=problem.message, fix=fix)]
    seccomp = any(option.startswith("name=seccomp") for option in info.get("SecurityOptions") or ())
    limits = [name for name in ("MemoryLimit", "CpuCfsQuota", "PidsLimit") if not info.get(name)]
    return [
        Finding(name="container engine", ok=True, detail=f"{info['ServerVersion']} at {engine.host}"),
        Finding(
            name="Linux containers",
            ok=info.get("OSType") == "linux",
            detail=str(info.get("OSType")),
            fix="Switch the engine to Linux containers.",
        ),
        Finding(
            name="seccomp",
            ok=seccomp,
            needed=False,
            detail="" if seccomp else "containers run without it",
            fix="" if seccomp else "Use an engine and a kernel with seccomp.",
        ),
        Finding(
            name="limits",
            ok=not limits,
            needed=False,
            detail=f"not enforced: {', '.join(limits)}" if limits else "memory, cpu and processes",
            fix="Give the engine these cgroup controllers." if limits else "",
        ),
    ]


def _tools() -> Finding:
    try:
        docker_tools.collect()
    except SeatrialError as problem:
        return Finding(name="grading tools", ok=False, detail=problem.message, fix=problem.fix)
    return Finding(name="grading tools", ok=True, detail="a static busybox and setpriv")


def _network(host: str) -> Finding:
    routed = can_route() and runs_here(host)
    return Finding(
        name="network filter",
        ok=routed,
        needed=False,
        detail="our own router" if routed else "a shared bridge: no allowlists, private addresses stay open",
        fix="" if routed else "Run as root on the engine's own machine, with nftables installed.",
    )
