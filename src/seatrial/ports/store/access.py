"""Tokens of callers and keys of model providers."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from seatrial.domain.frozen import Frozen
from seatrial.domain.token import NewToken, Token


class TokenStore(Protocol):
    async def save_token(self, token: NewToken, now: datetime) -> Token: ...

    async def token(self, fingerprint: str) -> Token | None:
        """Returns the token also if it is not valid any more; the caller checks that."""

    async def tokens(self) -> list[Token]:
        """All of them, newest first."""

    async def revoke_token(self, token_id: int, now: datetime) -> Token: ...

    async def note_token_use(self, token_id: int, now: datetime) -> None: ...


class ProviderKey(Frozen):
    """A key of the installation, encrypted with its secret key."""

    name: str
    sealed: str
    set_at: datetime


class KeyStore(Protocol):
    async def save_provider_key(self, name: str, sealed: str, now: datetime) -> None: ...

    async def provider_keys(self) -> list[ProviderKey]: ...

    async def delete_provider_key(self, name: str) -> None: ...
