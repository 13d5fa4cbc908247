"""Processes of a sandbox as this machine's ``/proc`` shows them. ``pod`` asks; nothing here ends any."""

from __future__ import annotations

import select
from pathlib import Path


def children(pid: int) -> list[int]:
    """Its children; none if it is gone."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def has_ended(process: int, patience: float) -> bool:
    """Whether the process behind a pidfd ends within so many seconds. Blocking."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(patience * 1000))


def counts_alike(pid: int) -> bool:
    """Whether a process has the same number for the verifier as for the agent."""
    status = Path(f"/proc/{pid}/status").read_text()
    numbers = next(line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:"))
    return numbers[-1] == numbers[-2]


def is_dead(process: int) -> bool:
    """Whether it is gone, or waits for its parent to take note."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True


def shares_numbers(process: int, other: int) -> bool:
    """Whether two processes live in the same process namespace; not if one is gone."""
    try:
        return Path(f"/proc/{process}/ns/pid").stat().st_ino == Path(f"/proc/{other}/ns/pid").stat().st_ino
    except OSError:
        return False


def neighbours(pid: int) -> set[int]:
    """All that live in the same process namespace, itself included."""
    namespace = Path(f"/proc/{pid}/ns/pid").stat().st_ino
    return {int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal() and _is_in(path, namespace)}


def _is_in(process: Path, namespace: int) -> bool:
    try:
        return (process / "ns" / "pid").stat().st_ino == namespace
    except OSError:
        return False
