"""Who may do what: tokens with a role. Only a token's fingerprint is ever kept."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime
from enum import StrEnum

from seatrial.domain.frozen import Frozen

_PREFIX = "st_"
_BYTES = 32


class Role(StrEnum):
    """Each may do all that the one before it may."""

    VIEWER = "viewer"
    """Looks at everything but keys and tokens."""
    USER = "user"
    """Uploads, runs, cancels, deletes."""
    ADMIN = "admin"
    """Hands out tokens and keeps the installation's provider keys."""

    def covers(self, needed: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(needed)


class NewToken(Frozen):
    name: str
    role: Role
    fingerprint: str
    expires_at: datetime | None = None


class Token(NewToken):
    id: int
    created_at: datetime
    revoked_at: datetime | None = None
    used_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def fresh_secret() -> str:
    """256 random bits, recognisable as ours. Shown once, to the one who asked for it."""
    return _PREFIX + secrets.token_urlsafe(_BYTES)


def fingerprint(secret: str) -> str:
    """What is kept of a token. A plain hash is enough for 256 random bits: there is nothing to guess."""
    return hashlib.sha256(secret.encode()).hexdigest()
