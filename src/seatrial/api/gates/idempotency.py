"""Idempotent creation: the same ``Idempotency-Key`` with the same request returns the first result."""

from __future__ import annotations

import hashlib
from typing import Annotated

from fastapi import Depends, Header, Request

from seatrial.api.context import CallerDep
from seatrial.ports.store import Once


async def _once(
    request: Request,
    caller: CallerDep,
    idempotency_key: Annotated[
        str | None,
        Header(
            max_length=200,
            pattern=r"^[^\x00]*$",
            description="A repeated request with the same key returns the first result. Use one key per request.",
        ),
    ] = None,
) -> Once | None:
    if not idempotency_key:
        return None
    content = hashlib.sha256(f"{request.method} {request.url.path}\n".encode())
    content.update(await request.body())
    return Once(key=f"{caller.name}:{idempotency_key}", fingerprint=content.hexdigest())


OnceDep = Annotated[Once | None, Depends(_once)]
