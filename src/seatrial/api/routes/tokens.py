"""Tokens: admins create, list and revoke them. Only the answer that creates a token contains its secret."""

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
    """All tokens, newest first, including revoked ones."""
    now = service.installation.clock()
    return TokenPage(items=[_item(token, now) for token in await service.installation.store.tokens()])


@router.post("", status_code=201)
async def make_token(asked: TokenRequest, service: ServiceDep) -> TokenMade:
    """Creates a token. Only this answer contains its secret."""
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
    """Revokes a token. It and all sessions opened with it are refused from now on."""
    await service.installation.store.revoke_token(token_id, service.installation.clock())


def _item(token: Token, now: datetime) -> TokenItem:
    return TokenItem(**token.model_dump(exclude={"fingerprint"}), valid=token.is_valid(now))
