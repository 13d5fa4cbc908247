"""Tokens and their roles. Only a token's fingerprint is stored."""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import datetime, timedelta
from enum import StrEnum

from seatrial.domain.frozen import Frozen
from seatrial.errors import InvalidInput

_PREFIX = "st_"
_BYTES = 32
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LONGEST_LIFE = timedelta(days=3650)


class Role(StrEnum):
    """Each role includes the permissions of the one before it."""

    VIEWER = "viewer"
    """Reads everything except keys and tokens."""
    USER = "user"
    """Uploads, runs, cancels, deletes."""
    ADMIN = "admin"
    """Manages tokens and the installation's provider keys."""

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
    """256 random bits with our prefix. Shown once, to the creator."""
    return _PREFIX + secrets.token_urlsafe(_BYTES)


def fingerprint(secret: str) -> str:
    """The stored form of a token. A plain hash is enough for 256 random bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def lifetime(text: str) -> timedelta | None:
    """``30d``, ``12h``, ``2w``, ``45m``; ``None`` for ``never``."""
    if text == "never":
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,8})([mhdw])", text, re.ASCII)
    life = int(found[1]) * _UNITS[found[2]] if found else timedelta(0)
    if not timedelta(0) < life <= _LONGEST_LIFE:
        raise InvalidInput(
            "This is not a valid lifetime.",
            field="expires",
            fix="Use 30d, 12h, 2w (ten years at most) or never.",
        )
    return life
