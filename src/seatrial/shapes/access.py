"""Tokens, provider keys and sessions. Only ``CreatedToken`` contains a secret."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field, SecretStr

from seatrial.domain.token import Role
from seatrial.shapes.answers import Listing


class TokenRequest(BaseModel):
    name: str = Field(min_length=1, max_length=100, pattern=r"^[^\x00]*$")
    role: Role = Role.USER
    expires: str = Field(default="90d", max_length=20)
    """Lifetime: ``30d``, ``12h``, ``2w``, or ``never``."""


class TokenItem(BaseModel):
    id: int
    name: str
    role: Role
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None
    valid: bool


class TokenMade(TokenItem):
    secret: str
    """Shown only in this answer."""


class TokenPage(Listing[TokenItem]):
    """All tokens, newest first."""


class KeyValue(BaseModel):
    value: SecretStr


class KeyItem(BaseModel):
    name: str
    set_at: datetime


class KeyPage(Listing[KeyItem]):
    """All provider keys, by name."""


class Login(BaseModel):
    token: str = Field(min_length=1, max_length=512)


class SessionState(BaseModel):
    """The caller. ``name`` and ``role`` are missing if tokens are required and there is no session."""

    name: str | None
    role: Role | None
    auth: Literal["token", "none"]
