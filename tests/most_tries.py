"""How often a trial can be claimed at most, for tests that search a trial that kills its worker."""

from __future__ import annotations

from seatrial.domain.trial import OUTSIDE_LOSSES_ALLOWED, SHARED_LOSSES_ALLOWED


def most_tries(tries: int, held: int) -> int:
    """For a job that allows ``tries``, where no worker holds more than ``held`` trials."""
    return OUTSIDE_LOSSES_ALLOWED + SHARED_LOSSES_ALLOWED + max(held, 1).bit_length() + 1 + tries
