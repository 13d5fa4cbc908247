"""Read-only links: a secret address that shows one job or one trial, until it expires or is revoked.

Only the fingerprint of the secret is stored. A link ends with the token that created it.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from seatrial.domain.frozen import Frozen
from seatrial.domain.token import lifetime
from seatrial.errors import InvalidInput

LINK_PREFIX = "st_link_"
"""Begins like a token, so that logs redact both by the same pattern."""
_BYTES = 32
_LONGEST_LIFE = timedelta(days=90)


class NewLink(Frozen):
    fingerprint: str
    job_id: int
    trial_id: int | None = None
    """Only this trial of the job. ``None``: the whole job."""
    author: str
    token_id: int | None = None
    """The token that created it."""
    expires_at: datetime


class Link(NewLink):
    id: int
    created_at: datetime
    revoked_at: datetime | None = None
    """When it was revoked, or the token that created it was."""

    def is_valid(self, now: datetime) -> bool:
        return self.revoked_at is None and now < self.expires_at


def fresh_link_secret() -> str:
    """256 random bits with our prefix. Shown once, to the creator."""
    return LINK_PREFIX + secrets.token_urlsafe(_BYTES)


def link_lifetime(text: str) -> timedelta:
    """``7d``, ``12h``; at most 90 days."""
    life = lifetime(text)
    if life is None or life > _LONGEST_LIFE:
        raise InvalidInput("A link must expire within 90 days.", field="expires", fix="Use 7d, 12h or 4w.")
    return life
