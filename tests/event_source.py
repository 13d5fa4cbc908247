"""A client of server-sent events that keeps what it got, as a browser's ``EventSource`` would."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True)
class Got:
    id: str
    kind: str
    data: dict[str, Any]
    at: float
    """When it arrived, by the clock of this machine."""

    @property
    def key(self) -> tuple[str, int | None]:
        return self.kind, self.data.get("seq")


def client(address: str) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    return httpx.AsyncClient(base_url=address, trust_env=False, timeout=60, limits=limits)


async def listen(http: httpx.AsyncClient, path: str, last_id: str = "", **query: str) -> AsyncIterator[Got]:
    """Until the stream ends; the last one is of the kind ``end`` where the server said so."""
    headers = {"Last-Event-ID": last_id} if last_id else {}
    async with http.stream("GET", f"/api/v1{path}", headers=headers, params=query) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert (answer.headers["cache-control"], answer.headers["x-accel-buffering"]) == ("no-store", "no")
        fields: dict[str, str] = {}
        async for line in answer.aiter_lines():
            if not line:
                if "data" in fields:
                    yield Got(fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"]), time.time())
                fields = {}
            elif not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = value


async def everything(http: httpx.AsyncClient, path: str, last_id: str = "", **query: str) -> list[Got]:
    return [got async for got in listen(http, path, last_id, **query)]


async def collect(into: list[Got], http: httpx.AsyncClient, path: str) -> None:
    """As it comes, for those who look meanwhile."""
    async for got in listen(http, path):
        into += [got]
