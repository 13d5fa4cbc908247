"""The whole application in the test's own process, with a home of its own: quick, and its store is within reach."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from seatrial.api.app import create_app
from seatrial.api.context import Service
from seatrial.domain.token import NewToken, Role, fingerprint, fresh_secret
from seatrial.settings import Settings

URL = "http://127.0.0.1:8000"


@dataclass(frozen=True)
class Api:
    app: FastAPI
    client: httpx.AsyncClient

    @property
    def service(self) -> Service:
        service: Service = self.app.state.service
        return service

    async def token(self, role: Role, name: str = "", life: timedelta | None = None) -> str:
        """The secret of a fresh token."""
        secret, now = fresh_secret(), self.service.installation.clock()
        until: datetime | None = now + life if life is not None else None
        new = NewToken(name=name or role.value, role=role, fingerprint=fingerprint(secret), expires_at=until)
        await self.service.installation.store.tokens.save(new, now)
        return secret


@asynccontextmanager
async def api_open(home: Path, **settings: Any) -> AsyncIterator[Api]:
    app = create_app(Settings(home=home, **settings))
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 40000))
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url=URL) as client:
        yield Api(app, client)


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}
