"""How a worker died: the surest witness decides."""

from __future__ import annotations

import signal

import pytest

from seatrial.domain.fleet.worker_death import Death, Evidence, Exit, judge


@pytest.mark.parametrize(
    ("status", "memory_kill", "expected"),
    [
        (-signal.SIGKILL, False, Death.KILLED),
        (-signal.SIGTERM, False, Death.KILLED),
        (-signal.SIGKILL, True, Death.OUT_OF_MEMORY),
        (-signal.SIGTERM, True, Death.KILLED),
        (-signal.SIGSEGV, False, Death.CRASH),
        (-signal.SIGABRT, True, Death.CRASH),
        (1, False, Death.CRASH),
        (0, False, Death.CRASH),
    ],
)
def test_what_a_supervisor_saw(status: int, memory_kill: bool, expected: Death) -> None:
    seen = Exit(status=status, memory_kill=memory_kill)
    assert judge(Evidence(exit=seen, supervised=True, host_silent=True)) is expected, "its word is the surest"


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (Evidence(), Death.UNKNOWN),
        (Evidence(supervised=True), Death.UNKNOWN),
        (Evidence(supervised=True, supervisor_gone=True), Death.WITH_SUPERVISOR),
        (Evidence(supervisor_gone=True), Death.UNKNOWN),
        (Evidence(host_silent=True), Death.MACHINE_GONE),
        (Evidence(memory_kill=True, supervised=True, supervisor_gone=True), Death.OUT_OF_MEMORY),
    ],
)
def test_without_a_supervisors_word(evidence: Evidence, expected: Death) -> None:
    assert judge(evidence) is expected


def test_only_what_comes_from_outside_acquits_the_trials() -> None:
    assert [one for one in Death if one.from_outside] == [Death.KILLED, Death.WITH_SUPERVISOR, Death.MACHINE_GONE]
    assert [one for one in Death if one.of_many] == [Death.WITH_SUPERVISOR, Death.MACHINE_GONE]
