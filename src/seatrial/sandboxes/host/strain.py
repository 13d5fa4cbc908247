"""How often the limits of a sandbox held it up, from the counters of its cgroups. Both versions of cgroups."""

from __future__ import annotations

from pathlib import Path

from seatrial.domain.frozen import Frozen


class Strain(Frozen):
    throttled_sec: float | None = None
    """Seconds in which the processor limit stopped it, added up over processors."""
    memory_pressure: int | None = None
    """How often it reached its memory limit."""


def strain_of(cpu: Path | None, memory: Path | None) -> Strain:
    """``cpu`` and ``memory`` are its cgroups; with version 2 they are the same."""
    return Strain(
        throttled_sec=None if cpu is None else _throttled(_text(cpu / "cpu.stat")),
        memory_pressure=None if memory is None else _reached(memory),
    )


def _throttled(stat: str) -> float | None:
    for name, unit in (("throttled_usec", 1e-6), ("throttled_time", 1e-9)):
        if (value := _value(stat, name)) is not None:
            return round(value * unit, 3)
    return None


def _reached(group: Path) -> int | None:
    if (times := _value(_text(group / "memory.events"), "max")) is not None:
        return times
    # Version 1 counts at the limit with swap first, if both limits are the same. Some kernels count kills only.
    failures = [_text(group / name).strip() for name in ("memory.failcnt", "memory.memsw.failcnt")]
    known = [int(text) for text in failures if text.isdigit()]
    kills = _value(_text(group / "memory.oom_control"), "oom_kill") or 0
    return max(sum(known), kills) if known else None


def _value(text: str, name: str) -> int | None:
    for line in text.splitlines():
        if line.startswith(f"{name} "):
            return int(line.split()[1])
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
