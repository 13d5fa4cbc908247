"""Settings of property-based tests: a busy machine fails none of them, and ``make test`` tries fewer examples."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_USUAL = 100
_MACHINE = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
"""Slow drawing says something about the machine. Tests that share a fixture between examples clean up after each."""


def register_profiles() -> None:
    """``make test`` chooses ``brief``."""
    patient = settings(deadline=None, suppress_health_check=_MACHINE)
    settings.register_profile("usual", patient, max_examples=_USUAL)
    settings.register_profile("brief", patient, max_examples=_USUAL // 4)
    settings.load_profile("usual")


def trying(examples: int) -> settings:
    """So many examples, or with ``--hypothesis-profile=brief`` a quarter of them."""
    number = max(1, examples * settings.default.max_examples // _USUAL)
    return settings(max_examples=number, deadline=None, suppress_health_check=_MACHINE)
