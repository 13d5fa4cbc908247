"""The cause of an exception, from its class name and message. Harbor keeps nothing else of it in a trial's result.

The runner calls this once, when a trial has ended.
"""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.agents.model_error import SERVICE_ERRORS
from seatrial.domain.trial import Cause, Mark, Phase, blamed

MARKS: Mapping[str, Mark] = {
    "AgentTimeoutError": Mark.AGENT_TIMEOUT,
    "NonZeroAgentExitCodeError": Mark.AGENT_ERROR,
    "OwnProcessesKilled": Mark.AGENT_ERROR,
    "OutputTokenExceededError": Mark.AGENT_ERROR,
    "ContextWindowExceededError": Mark.AGENT_ERROR,
    "AgentSafetyRefusalError": Mark.AGENT_ERROR,
    "BudgetSpent": Mark.OVER_BUDGET,
}
"""After these exceptions Harbor still grades, and the reward counts."""

SERVICE_FAULTS = frozenset(
    {
        "AgentAuthenticationError", "ApiConnectionClosedError", "ApiConnectionError", "ApiError",
        "ApiInternalServerError", "ApiOverloadedError", "ApiProviderResourceNotFoundError", "ApiRateLimitError",
        "ApiResponseStalledError", "ApiUsageLimitError", "ModelNotFoundError", "NetworkConnectionError",
        "UnknownApiError",
    }
)  # fmt: skip
"""An installed agent ended because its model's service failed. Harbor grades after these too, but the agent's
work is incomplete: unless it passed, the trial is an LLM error."""

_BY_CAUSE: Mapping[Cause, str] = {
    Cause.LLM: """ModelFault APIError ContentPolicyViolationError JSONSchemaValidationError LiteLLMUnknownProvider
        MidStreamFallbackError PaymentRequiredError RejectedRequestError UnsupportedParamsError""",
    Cause.VERIFIER: """VerifierFault VerifierTimeoutError RewardFileNotFoundError RewardFileEmptyError
        VerifierOutputParseError AddTestsDirError DownloadVerifierDirError""",
    Cause.IMAGE: "ImageFault RegistryUnreachable SandboxBuildFailedError",
    Cause.SANDBOX: """SandboxFault EngineGone EngineRefused SetupProblem EnvironmentStartTimeoutError HealthcheckError
        ServiceOperationsUnsupportedError SandboxLikelyOutOfMemoryError MemoryLimitExceededError""",
    Cause.AGENT: "AgentFault AgentSetupTimeoutError ContextLengthExceededError OutputLengthExceededError",
}
_CAUSES: Mapping[str, Cause] = {
    **dict.fromkeys(SERVICE_FAULTS, Cause.LLM),
    **{name: Cause.LLM for names in SERVICE_ERRORS.values() for name in names.split()},
    **{name: cause for cause, names in _BY_CAUSE.items() for name in names.split()},
    **dict.fromkeys(MARKS, Cause.AGENT),
}

_BY_MESSAGE: tuple[tuple[str, Cause], ...] = (
    ("Failed to start tmux session", Cause.SANDBOX),
    ("failed to send", Cause.SANDBOX),
)
"""Harbor raises a plain ``RuntimeError`` for these."""


def cause_of(exception_type: str, message: str = "", phase: Phase | None = None) -> Cause:
    """Why a trial without a valid reward ended. For an exception that is in no table, the phase decides."""
    if exception_type in _CAUSES:
        return _CAUSES[exception_type]
    for part, cause in _BY_MESSAGE:
        if part in message:
            return cause
    return blamed(phase) if phase is not None else Cause.AGENT


def mark_of(exception_type: str) -> Mark | None:
    """The mark for a reward that was given in spite of this exception."""
    return MARKS.get(exception_type)


def voids_failure(exception_type: str) -> bool:
    """Whether a failed grade says nothing about the agent, because its model's service failed."""
    return exception_type in SERVICE_FAULTS
