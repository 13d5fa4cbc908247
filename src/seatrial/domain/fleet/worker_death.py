"""How a worker died, from the sources that can know it.

Its supervisor knows the exit status, the kernel counts what it killed for lack of memory, and the heartbeats tell
whether the machine is still there. A worker that was killed from outside, or whose machine is gone, says nothing
against the trials that it ran. A crash does.
"""

from __future__ import annotations

import signal
from enum import StrEnum

from seatrial.domain.frozen import Frozen

_FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})


class Death(StrEnum):
    KILLED = "killed"
    """Somebody ended it from outside: an operator, a service manager, a node that was taken away."""
    WITH_SUPERVISOR = "with_supervisor"
    """Its supervisor is gone, too. A supervisor runs no code of trials, so it did not fall with one."""
    MACHINE_GONE = "machine_gone"
    """Its machine was switched off, restarted or cut off."""
    OUT_OF_MEMORY = "out_of_memory"
    """The kernel killed it for lack of memory."""
    CRASH = "crash"
    """It ended by itself: a signal of its own code, or an unexpected exit."""
    UNKNOWN = "unknown"

    @property
    def from_outside(self) -> bool:
        """Whether no trial seems to have been the reason."""
        return self is Death.KILLED or self.of_many

    @property
    def of_many(self) -> bool:
        """Whether more than this process fell, so that no trial in it can have been the reason."""
        return self in (Death.WITH_SUPERVISOR, Death.MACHINE_GONE)

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    Death.KILLED: "was killed from outside",
    Death.WITH_SUPERVISOR: "was ended with its supervisor",
    Death.MACHINE_GONE: "was lost with its machine",
    Death.OUT_OF_MEMORY: "was killed by the kernel, which was out of memory,",
    Death.CRASH: "crashed",
    Death.UNKNOWN: "went silent",
}


class Exit(Frozen):
    """What the supervisor of a worker saw."""

    status: int
    """As Python's ``subprocess`` gives it: the negative number of a signal."""
    memory_kill: bool = False
    """Whether the kernel counted a process of the same cgroup that it killed for lack of memory."""


class Evidence(Frozen):
    """What is known about a worker that is gone."""

    exit: Exit | None = None
    supervised: bool = False
    supervisor_gone: bool = False
    memory_kill: bool = False
    host_silent: bool = False
    """No other process of that boot of its machine has sent a heartbeat since."""


def judge(evidence: Evidence) -> Death:
    """From the surest witness to the least sure."""
    seen = evidence.exit
    if seen is not None:
        return _of_exit(seen)
    if evidence.memory_kill:
        return Death.OUT_OF_MEMORY
    if evidence.host_silent:
        return Death.MACHINE_GONE
    if evidence.supervised and evidence.supervisor_gone:
        return Death.WITH_SUPERVISOR
    return Death.UNKNOWN


def _of_exit(seen: Exit) -> Death:
    if seen.status == -signal.SIGKILL and seen.memory_kill:
        return Death.OUT_OF_MEMORY
    if seen.status < 0 and -seen.status in _FROM_OUTSIDE:
        return Death.KILLED
    return Death.CRASH
