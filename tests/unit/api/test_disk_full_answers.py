"""A full disk is 507, wherever below it was met and whatever was made of it; other faults are not."""

from __future__ import annotations

import errno
import sqlite3

import httpx
import pytest
from fastapi import FastAPI, HTTPException

from seatrial.api.answers import add_error_handlers
from seatrial.errors import Conflict, StorageFull, StoreUnavailable


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


FULL = OSError(errno.ENOSPC, "No space left on device")
CASES = [
    (FULL, 507),
    (OSError(errno.EDQUOT, "Disk quota exceeded"), 507),
    (StorageFull("There is no room."), 507),
    (caused(HTTPException(400, "There was an error parsing the body"), FULL), 507),
    (caused(StoreUnavailable("The files could not be reached."), FULL), 507),
    (StoreUnavailable("The store did not answer: database or disk is full."), 507),
    (caused(RuntimeError("x"), sqlite3.OperationalError("database or disk is full")), 507),
    (caused(StoreUnavailable("x"), RuntimeError("Generic error: No space left on device (os error 28)")), 507),
    (StoreUnavailable("The store did not answer."), 503),
    (RuntimeError("A fault of ours."), 500),
    (PermissionError(errno.EACCES, "Permission denied"), 500),
    (HTTPException(400, "There was an error parsing the body"), 400),
    (Conflict("It runs."), 409),
]


@pytest.mark.parametrize(("error", "status"), CASES, ids=lambda value: repr(value)[:60])
async def test_only_a_full_disk_is_507(error: Exception, status: int) -> None:
    app = FastAPI()
    add_error_handlers(app)

    async def fail() -> None:
        raise error

    app.add_api_route("/api/v1/fail", fail)
    app.add_api_route("/api/fail", fail)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer, other = await client.get("/api/v1/fail"), await client.get("/api/fail")
    assert (answer.status_code, other.status_code) == (status, status)
    if status == 507:
        assert answer.json()["error"]["code"] == "storage_full" and answer.json()["error"]["message"]
        assert other.json()["detail"]
