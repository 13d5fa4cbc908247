"""One error tree. A message says what is wrong and, where there is one, how to fix it.

::

    SeatrialError
    ├── InvalidInput              the caller can fix it; exit status 2, HTTP 4xx
    │   ├── InvalidTask           contains every problem, with file, line and fix
    │   ├── InvalidArchive        names the member and the rule it broke
    │   ├── MissingKey            a model needs a provider key, and there is none
    │   └── Unsupported           the task needs what this installation does not have (GPU, Windows ...)
    ├── NotFound                  no such job, trial, task, dataset or file
    ├── Conflict                  the current state does not allow this
    │   └── StaleTry              a write carried a try number that is no longer the current one
    ├── ProtectionRefused         the platform does not protect this machine from scale-in
    ├── SetupProblem              this machine lacks something; the message says how to fix it
    ├── StoreUnavailable          the store did not answer; a retry is safe
    │   ├── StorageFull           the disk is full; HTTP 507
    │   └── ServiceUnavailable    a service cannot be reached over HTTP, or cannot answer now
    ├── QueueUnavailable          wake-ups do not arrive; workers find trials by asking the store
    ├── Unauthenticated           the service requires a valid token; HTTP 401
    ├── Forbidden                 the token's role does not allow this; HTTP 403
    └── TrialFault                why a trial could not be graded; classified once, where it enters Seatrial
        ├── ImageFault            the image could not be pulled or built
        ├── SandboxFault          the sandbox did not start, broke or vanished
        ├── ModelFault            the model's service failed: rate limit, auth, outage
        ├── VerifierFault         grading gave no valid reward
        └── AgentFault            the agent crashed and nothing could be graded

A failed trial is a result, not an exception. The runner turns a ``TrialFault`` into a result with the outcome
``error``, which never counts as failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from seatrial.domain.task import TaskProblem
    from seatrial.domain.trial import Cause


class SeatrialError(Exception):
    """The base class of all errors that Seatrial raises."""

    def __init__(self, message: str = "", *, fix: str = "") -> None:
        self.message = message or (self.__doc__ or "").strip()
        self.fix = fix
        super().__init__(f"{self.message} {fix}".strip())


class InvalidInput(SeatrialError):
    """The input is not valid."""

    def __init__(self, message: str = "", *, field: str = "", fix: str = "") -> None:
        self.field = field
        super().__init__(message, fix=fix)


class InvalidTask(InvalidInput):
    """The task is not valid."""

    def __init__(self, name: str, problems: tuple[TaskProblem, ...], *, message: str = "") -> None:
        """``message``: use this text instead of the problems."""
        self.name = name
        self.problems = problems
        lines = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(message or f"Task {name!r} has {len(problems)} problem{'s' * (len(problems) != 1)}:\n{lines}")


class InvalidArchive(InvalidInput):
    """The archive is hostile or broken."""

    def __init__(self, member: str, rule: str, *, fix: str = "") -> None:
        self.member = member
        self.rule = rule
        super().__init__(f"Archive member {member!r} refused: {rule}.", fix=fix)


class MissingKey(InvalidInput):
    """The model needs a provider key and none was given."""


class Unsupported(InvalidInput):
    """This installation cannot run that."""


class NotFound(SeatrialError):
    """Not found."""


class Conflict(SeatrialError):
    """The current state does not allow this."""


class StaleTry(Conflict):
    """The trial has been claimed again since; this result is refused."""


class ProtectionRefused(SeatrialError):
    """The platform does not protect this machine from scale-in."""


class SetupProblem(SeatrialError):
    """This machine lacks a requirement."""


class StoreUnavailable(SeatrialError):
    """The store did not answer."""


class StorageFull(StoreUnavailable):
    """The disk is full."""


class ServiceUnavailable(StoreUnavailable):
    """The service cannot be reached, or cannot do this now."""


class QueueUnavailable(SeatrialError):
    """Wake-ups do not arrive. Workers find trials by asking the store."""


class Unauthenticated(SeatrialError):
    """The service requires a valid token."""


class Forbidden(SeatrialError):
    """The token's role does not allow this."""


class TrialFault(SeatrialError):
    """The trial could not be graded."""

    cause: ClassVar[Cause | str] = "sandbox"


class ImageFault(TrialFault):
    """The image could not be pulled or built."""

    cause = "image"


class SandboxFault(TrialFault):
    """The sandbox did not start, broke or vanished."""

    cause = "sandbox"


class ModelFault(TrialFault):
    """The model's service failed."""

    cause = "llm"


class VerifierFault(TrialFault):
    """Grading gave no valid reward."""

    cause = "verifier"


class AgentFault(TrialFault):
    """The agent crashed and nothing could be graded."""

    cause = "agent"
