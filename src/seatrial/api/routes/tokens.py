"""Tokens: made, listed and revoked by admins. The secret is in one answer and nowhere else, ever."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Path

from seatrial.api.context import ServiceDep
from seatrial.api.routes.router import native_router
from seatrial.domain.numbers import LARGEST_ID
from seatrial.domain.token import NewToken, Token, fingerprint, fresh_secret, lifetime
from seatrial.shapes.access import TokenItem, TokenMade, TokenPage, TokenRequest

TokenId = Annotated[int, Path(ge=1, le=LARGEST_ID)]
router = native_router("/tokens", "access", 400, 404)


@router.get("")
async def list_tokens(service: ServiceDep) -> TokenPage:
    """All of them, newest first, revoked ones too."""
    now = service.installation.clock()
    return TokenPage(items=[_item(token, now) for token in await service.installation.store.tokens()])


@router.post("", status_code=201)
async def make_token(asked: TokenRequest, service: ServiceDep) -> TokenMade:
    """A new token. This answer is the only one with its secret."""
    now = service.installation.clock()
    life = lifetime(asked.expires)
    secret = fresh_secret()
    new = NewToken(
        name=asked.name,
        role=asked.role,
        fingerprint=fingerprint(secret),
        expires_at=now + life if life is not None else None,
    )
    token = await service.installation.store.save_token(new, now)
    return TokenMade(**_item(token, now).model_dump(), secret=secret)


@router.delete("/{token_id}", status_code=204)
async def revoke_token(token_id: TokenId, service: ServiceDep) -> None:
    """From now on it is refused, and so are sessions that were opened with it."""
    await service.installation.store.revoke_token(token_id, service.installation.clock())


def _item(token: Token, now: datetime) -> TokenItem:
    return TokenItem(**token.model_dump(exclude={"fingerprint"}), valid=token.is_valid(now))
