"""The verdict of a rollout, and the errors that callers see."""

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
    """A valid verdict. A rollout that could not be graded raises a ``TrialFault`` instead."""

    passed: bool
    rewards: dict[str, float]
    tests: tuple[TestResult, ...] = ()
    marks: tuple[Mark, ...] = ()
    verifier_output: str = ""
    """The end of the test output."""
    timings: tuple[PhaseTiming, ...] = ()

    @property
    def score(self) -> float:
        """1.0 if every test passes, otherwise 0.0."""
        return 1.0 if self.passed else 0.0

    @property
    def reward(self) -> float:
        """The verifier's deciding value, for tasks with partial credit."""
        value = deciding_reward(self.rewards)
        return self.score if value is None else value


_FAULTS: Mapping[Cause, type[TrialFault]] = {
    Cause.IMAGE: ImageFault,
    Cause.SANDBOX: SandboxFault,
    Cause.WORKER_LOST: SandboxFault,
    Cause.VERIFIER: VerifierFault,
    Cause.AGENT: AgentFault,
    Cause.LLM: ModelFault,
    Cause.REPLAY: ModelFault,
}


def graded(result: Result, verifier_output: str) -> Graded:
    """The verdict of an ended try; raises its error if there is none."""
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
    """Removes our own error's name, which Harbor puts before the message."""
    kind = _FAULTS[cause or Cause.SANDBOX]
    return kind(message.removeprefix(f"{kind.__name__}: "))


@contextmanager
def as_faults(phase: Phase) -> Iterator[None]:
    """Raises every error as one of ours, so that callers need to handle no others."""
    try:
        yield
    except SeatrialError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise fault(cause_of(kind, str(error), phase), f"{kind}: {error}") from error
