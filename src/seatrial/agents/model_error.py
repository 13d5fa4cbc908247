"""Classifies exceptions of model calls by class name, so that LiteLLM need not be imported.

``model_retries`` uses this to decide whether to wait, and ``adapters.causes`` to find the cause of a trial's error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from seatrial.engine.model_patience import seconds_asked


class ModelError(Enum):
    PASSING = "passing"
    """The service is busy or broken: rate limit, outage, timeout, dropped connection. Waiting may help."""
    LASTING = "lasting"
    """The service refuses: key, permission, unknown model, no credit, bad request. Waiting does not help."""
    AGENT = "agent"
    """Not the service's fault: the agent's conversation is too long. The agent handles it."""
    UNKNOWN = "unknown"


SERVICE_ERRORS = {
    ModelError.PASSING: "APIConnectionError APIResponseValidationError BadGatewayError InternalServerError"
    " RateLimitError ServiceUnavailableError Timeout",
    ModelError.LASTING: "AuthenticationError BadRequestError BudgetExceededError NotFoundError PermissionDeniedError"
    " UnprocessableEntityError",
}
"""Class names of LiteLLM's exceptions that the service caused."""
_OTHERS = {
    ModelError.PASSING: "APITimeoutError ConnectionError TimeoutError",
    ModelError.AGENT: "ContextLengthExceededError ContextWindowExceededError OutputLengthExceededError",
}
_KINDS = {name: kind for table in (SERVICE_ERRORS, _OTHERS) for kind, names in table.items() for name in names.split()}
"""The most specific listed class decides: LiteLLM's context error is also a bad request."""

_NO_MONEY = re.compile(r"insufficient_quota|exceeded your current quota|insufficient credits", re.IGNORECASE)


def classify_model_error(error: BaseException) -> ModelError:
    if _NO_MONEY.search(str(error)):
        return ModelError.LASTING
    for kind in type(error).__mro__:
        if kind.__name__ in _KINDS:
            return _KINDS[kind.__name__]
    return ModelError.UNKNOWN


def is_refusal(error: BaseException) -> bool:
    """Whether the service says that it gets too many calls: a rate limit, or an overload that it wants waited out."""
    if classify_model_error(error) is not ModelError.PASSING:
        return False
    status = getattr(error, "status_code", None)
    if status in (429, 529) or any(kind.__name__ == "RateLimitError" for kind in type(error).__mro__):
        return True
    return status == 503 and retry_after(error) is not None


def retry_after(error: BaseException, now: datetime | None = None) -> float | None:
    """Seconds that the service asked to wait (``Retry-After`` as a number or a date); ``None`` if it did not."""
    for headers in (getattr(error, "litellm_response_headers", None), _response_headers(error)):
        value = _header(headers, "retry-after")
        if value is not None:
            return seconds_asked(value, now or datetime.now(UTC))
    return None


def _response_headers(error: BaseException) -> Any:
    return getattr(getattr(error, "response", None), "headers", None)


def _header(headers: Mapping[str, str] | None, name: str) -> str | None:
    for key, value in (headers or {}).items():
        if key.lower() == name:
            return str(value)
    return None
