"""Whose fault an exception was, from its class name and message: all that Harbor keeps of it in a trial's result.

The runner calls it once, when a trial has ended. One table, no guesses from stack traces.
"""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.domain.trial import Cause, Mark, Phase, blamed

MARKS: Mapping[str, Mark] = {
    "AgentTimeoutError": Mark.AGENT_TIMEOUT,
    "NonZeroAgentExitCodeError": Mark.AGENT_ERROR,
    "OwnProcessesKilled": Mark.AGENT_ERROR,
    "OutputTokenExceededError": Mark.AGENT_ERROR,
    "ContextWindowExceededError": Mark.AGENT_ERROR,
    "AgentSafetyRefusalError": Mark.AGENT_ERROR,
}
"""After these Harbor still grades, and the reward stands."""

SERVICE_FAULTS = frozenset(
    {
        "ApiError",
        "ApiRateLimitError",
        "ApiUsageLimitError",
        "ApiInternalServerError",
        "ApiOverloadedError",
        "ApiConnectionClosedError",
        "ApiConnectionError",
        "ApiResponseStalledError",
        "ApiProviderResourceNotFoundError",
        "UnknownApiError",
        "AgentAuthenticationError",
        "ModelNotFoundError",
        "NetworkConnectionError",
    }
)
"""An installed agent ended on a fault of its model's service. Harbor grades after these too, but the verifier then
finds half an attempt: unless it passed, the trial is an LLM error."""

_BY_CAUSE: Mapping[Cause, tuple[str, ...]] = {
    Cause.LLM: (
        *sorted(SERVICE_FAULTS),
        "ModelFault",
        "APIConnectionError",
        "APIError",
        "APIResponseValidationError",
        "AuthenticationError",
        "BadGatewayError",
        "BadRequestError",
        "BudgetExceededError",
        "ContentPolicyViolationError",
        "InternalServerError",
        "JSONSchemaValidationError",
        "LiteLLMUnknownProvider",
        "MidStreamFallbackError",
        "NotFoundError",
        "PaymentRequiredError",
        "PermissionDeniedError",
        "RateLimitError",
        "RejectedRequestError",
        "ServiceUnavailableError",
        "Timeout",
        "UnprocessableEntityError",
        "UnsupportedParamsError",
    ),
    Cause.VERIFIER: (
        "VerifierFault",
        "VerifierTimeoutError",
        "RewardFileNotFoundError",
        "RewardFileEmptyError",
        "VerifierOutputParseError",
        "AddTestsDirError",
        "DownloadVerifierDirError",
    ),
    Cause.IMAGE: ("ImageFault", "RegistrySilent", "SandboxBuildFailedError"),
    Cause.SANDBOX: (
        "SandboxFault",
        "EngineGone",
        "EngineRefused",
        "SetupProblem",
        "EnvironmentStartTimeoutError",
        "HealthcheckError",
        "ServiceOperationsUnsupportedError",
        "SandboxLikelyOutOfMemoryError",
        "MemoryLimitExceededError",
    ),
    Cause.AGENT: (
        *sorted(MARKS),
        "AgentFault",
        "AgentSetupTimeoutError",
        "ContextLengthExceededError",
        "OutputLengthExceededError",
    ),
}
_CAUSES = {name: cause for cause, names in _BY_CAUSE.items() for name in names}

_BY_MESSAGE: tuple[tuple[str, Cause], ...] = (
    ("Failed to start tmux session", Cause.SANDBOX),
    ("failed to send", Cause.SANDBOX),
)
"""Harbor raises a plain ``RuntimeError`` for these."""


def cause_of(exception_type: str, message: str = "", phase: Phase | None = None) -> Cause:
    """Why a trial without a valid reward ended; an exception that is in no table is judged by the phase it ended."""
    if exception_type in _CAUSES:
        return _CAUSES[exception_type]
    for part, cause in _BY_MESSAGE:
        if part in message:
            return cause
    return blamed(phase) if phase is not None else Cause.AGENT


def mark_of(exception_type: str) -> Mark | None:
    """What stands beside a reward that was given in spite of this exception."""
    return MARKS.get(exception_type)


def voids_failure(exception_type: str) -> bool:
    """Whether a reward below passing says nothing about the agent, because its model's service had failed it."""
    return exception_type in SERVICE_FAULTS
