"""Processes of a sandbox as this machine's ``/proc`` shows them, and how they are ended. Both sandboxes use it."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """A part of ``/proc/PID/stat``."""

    state: str
    """Empty if there is no such process."""
    parent: int
    session: int

    @property
    def is_dead(self) -> bool:
        """Whether the process is gone, or only waits for its parent to reap it."""
        return self.state in ("Z", "X", "")


def is_dead(process: int) -> bool:
    return stat_of(process).is_dead


def stat_of(process: int) -> ProcessStat:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ProcessStat("", 0, -1)
    return ProcessStat(fields[0], int(fields[1]), int(fields[3]))


def children(pid: int) -> list[int]:
    """Its children; none if it is gone."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def has_ended(process: int, patience: float) -> bool:
    """Whether the process behind a pidfd ends within ``patience`` seconds. Blocking."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(patience * 1000))


def has_same_number_for_both(pid: int) -> bool:
    """Whether a process has the same number for the verifier as for the agent."""
    status = Path(f"/proc/{pid}/status").read_text()
    numbers = next(line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:"))
    return numbers[-1] == numbers[-2]


def shares_namespace(process: int, other: int) -> bool:
    """Whether two processes are in the same process namespace; ``False`` if one is gone."""
    namespace = _namespace(process)
    return namespace is not None and namespace == _namespace(other)


def neighbours(pid: int) -> set[int]:
    """All processes of the same process namespace, itself included."""
    namespace = _namespace(pid)
    if namespace is None:
        return set()
    numbers = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())
    return {number for number in numbers if _namespace(number) == namespace}


def _namespace(process: int) -> int | None:
    try:
        return Path(f"/proc/{process}/ns/pid").stat().st_ino
    except OSError:
        return None


def memory_kills(events: str) -> int:
    """Processes that a memory limit killed, from the text of a cgroup's ``memory.events`` or ``memory.oom_control``."""
    return sum(int(line.split()[1]) for line in events.splitlines() if line.startswith("oom_kill "))


def send(process: int, kind: signal.Signals = signal.SIGKILL) -> None:
    """Sends a signal; does nothing if the process is gone."""
    with suppress(ProcessLookupError):
        os.kill(process, kind)


def kill_tree(runtime_process: int, candidates: Callable[[], set[int]], patience: float = 10.0) -> None:
    """Kills the command that a runtime's process started. Blocking."""
    until = time.monotonic() + patience
    leader = _child_of_runtime(runtime_process, until)
    if leader is None:
        send(runtime_process)
    else:
        kill_family(leader, candidates, until - time.monotonic())


def kill_family(leader: int, candidates: Callable[[], set[int]], patience: float = 10.0) -> None:
    """Kills a command by its first process: its session and all of its descendants. Blocking.

    All are stopped before any is killed: a shell whose child dies goes on with its next line. A process that detached
    itself, with neither session nor parent in common, is a service and keeps running."""
    until = time.monotonic() + patience
    session = stat_of(leader).session
    stopped: set[int] = set()
    quiet = 0
    while quiet < 2 and time.monotonic() < until:
        family = _family(stopped | {leader}, session, candidates())
        for process in family - stopped:
            send(process, signal.SIGSTOP)
        quiet = 0 if family - stopped else quiet + 1
        stopped |= family
        time.sleep(0.001)
    for process in stopped:
        send(process)


def _child_of_runtime(runtime_process: int, until: float) -> int | None:
    """The command itself: the runtime's only child, which it has a few milliseconds after its start."""
    until = min(until, time.monotonic() + 2)
    while time.monotonic() < until and not stat_of(runtime_process).is_dead:
        if found := children(runtime_process):
            return found[0]
        time.sleep(0.002)
    return None


def _family(known: set[int], session: int, candidates: set[int]) -> set[int]:
    stats = {process: stat_of(process) for process in candidates}
    alive = {process: entry for process, entry in stats.items() if not entry.is_dead}
    family = {process for process, entry in alive.items() if process in known or entry.session == session}
    while True:
        more = {process for process, entry in alive.items() if entry.parent in (family | known)} - family
        if not more:
            return family
        family |= more
