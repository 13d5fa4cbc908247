"""Tokens and provider keys in memory."""

from __future__ import annotations

from datetime import datetime

from seatrial.domain.token import NewToken, Token
from seatrial.errors import NotFound
from seatrial.ports.store import ProviderKey


class MemoryAccess:
    def __init__(self) -> None:
        super().__init__()
        self._tokens: dict[int, Token] = {}
        self._provider_keys: dict[str, ProviderKey] = {}

    async def save_token(self, token: NewToken, now: datetime) -> Token:
        kept = Token(id=len(self._tokens) + 1, created_at=now, **token.model_dump())
        self._tokens[kept.id] = kept
        return kept

    async def token(self, fingerprint: str) -> Token | None:
        return next((token for token in self._tokens.values() if token.fingerprint == fingerprint), None)

    async def tokens(self) -> list[Token]:
        return list(reversed(self._tokens.values()))

    async def revoke_token(self, token_id: int, now: datetime) -> Token:
        if token_id not in self._tokens:
            raise NotFound(f"There is no token {token_id}.")
        known = self._tokens[token_id]
        self._tokens[token_id] = known.model_copy(update={"revoked_at": known.revoked_at or now})
        return self._tokens[token_id]

    async def note_token_use(self, token_id: int, now: datetime) -> None:
        if token_id in self._tokens:
            self._tokens[token_id] = self._tokens[token_id].model_copy(update={"used_at": now})

    async def save_provider_key(self, name: str, sealed: str, now: datetime) -> None:
        self._provider_keys[name] = ProviderKey(name=name, sealed=sealed, set_at=now)

    async def provider_keys(self) -> list[ProviderKey]:
        return sorted(self._provider_keys.values(), key=lambda key: key.name)

    async def delete_provider_key(self, name: str) -> None:
        if self._provider_keys.pop(name, None) is None:
            raise NotFound(f"There is no provider key {name}.")
