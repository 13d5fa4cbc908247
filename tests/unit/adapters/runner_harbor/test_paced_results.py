"""Who shares a pace, and which errors of a provider say that it was too fast."""

from __future__ import annotations

import pytest

from seatrial.adapters.runner_harbor.equip import ModelAccess
from seatrial.agents.model_error import is_refusal
from seatrial.engine.clock import system_clock
from seatrial.engine.provider_pace import ProviderPace
from seatrial.testing.memory_store.pace import MemoryPace


def test_accounts_and_addresses_have_a_pace_each() -> None:
    access = ModelAccess(pace=ProviderPace(MemoryPace(), "worker", system_clock))
    keys = [("m", None, "sk-one"), ("m", None, "sk-two"), ("m", "http://own", "sk-one"), ("other", None, "sk-one")]
    paces = [access._pace_of(*key) for key in keys]
    names = [pace.name for pace in paces if pace is not None]
    assert len(set(names)) == 4 and not any("sk-" in name or "own" in name for name in names)
    again = access._pace_of("m", None, "sk-one")
    assert again is not None and again.name == names[0]
    assert access._pace_of(None, None, None) is None
    assert ModelAccess()._pace_of("m", None, "sk-one") is None


class RateLimitError(Exception):
    pass


class ServiceUnavailableError(Exception):
    status_code = 503

    def __init__(self, **headers: str) -> None:
        super().__init__("busy")
        self.litellm_response_headers = {name.replace("_", "-"): value for name, value in headers.items()}


class InternalServerError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__("broken")
        self.status_code = status


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (RateLimitError("slow down"), True),
        (RateLimitError("You exceeded your current quota"), False),  # waiting does not help
        (ServiceUnavailableError(retry_after="3"), True),
        (ServiceUnavailableError(), False),
        (InternalServerError(529), True),
        (InternalServerError(500), False),
        (ValueError("ours"), False),
    ],
)
def test_what_counts_as_a_refusal(error: Exception, refusal: bool) -> None:
    assert is_refusal(error) is refusal
