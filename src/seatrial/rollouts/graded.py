"""What the task's own tests said about a rollout, and what faults look like to whoever asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from seatrial.adapters.causes import cause_of
from seatrial.domain.frozen import Frozen
from seatrial.domain.result import PhaseTiming, Result, TestResult, deciding_reward
from seatrial.domain.trial import Cause, Mark, Outcome, Phase
from seatrial.errors import (
    AgentFault,
    ImageFault,
    ModelFault,
    SandboxFault,
    SeatrialError,
    TrialFault,
    VerifierFault,
)


class Graded(Frozen):
    """A valid verdict. A rollout that could not be graded has none: it raises a ``TrialFault``."""

    passed: bool
    rewards: dict[str, float]
    tests: tuple[TestResult, ...] = ()
    marks: tuple[Mark, ...] = ()
    verifier_output: str = ""
    """The end of what the tests printed."""
    timings: tuple[PhaseTiming, ...] = ()

    @property
    def score(self) -> float:
        """1.0 if every test passes, else 0.0."""
        return 1.0 if self.passed else 0.0

    @property
    def reward(self) -> float:
        """The verifier's deciding value, for tasks that give part of a point."""
        value = deciding_reward(self.rewards)
        return self.score if value is None else value


_FAULTS: Mapping[Cause, type[TrialFault]] = {
    Cause.IMAGE: ImageFault,
    Cause.SANDBOX: SandboxFault,
    Cause.WORKER_LOST: SandboxFault,
    Cause.VERIFIER: VerifierFault,
    Cause.AGENT: AgentFault,
    Cause.LLM: ModelFault,
}


def graded(result: Result, verifier_output: str) -> Graded:
    """The verdict of an ended attempt; raises its fault where there is none."""
    if not result.outcome.graded:
        raise fault(result.cause, result.message)
    return Graded(
        passed=result.outcome is Outcome.PASSED,
        rewards=result.rewards,
        tests=result.tests,
        marks=result.marks,
        verifier_output=verifier_output,
        timings=result.timings,
    )


def fault(cause: Cause | None, message: str) -> TrialFault:
    """A message that Harbor put our own error's name before says it once."""
    kind = _FAULTS[cause or Cause.SANDBOX]
    return kind(message.removeprefix(f"{kind.__name__}: "))


@contextmanager
def as_faults(phase: Phase) -> Iterator[None]:
    """Whatever goes wrong is raised as one of our errors: callers have to handle no others."""
    try:
        yield
    except SeatrialError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise fault(cause_of(kind, str(error), phase), f"{kind}: {error}") from error
