"""Who is asked for a token, and which role a method and a path need."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from seatrial.api.gates.access import Access, access_mode, check_access, is_loopback, needed_role
from seatrial.domain.token import NewToken, Role, lifetime
from seatrial.errors import InvalidInput, SetupProblem
from seatrial.settings import Settings
from seatrial.testing.memory_store import MemoryStore
from tests.contracts.store.samples import MINUTE, NOON


def _ours(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Without what asyncio says about garbage of earlier tests, whenever that is collected."""
    return [record.getMessage() for record in caplog.records if record.name.startswith("seatrial")]


@pytest.mark.parametrize(
    ("host", "auth", "expected"),
    [
        ("127.0.0.1", "auto", Access.LOOPBACK),
        ("::1", "auto", Access.LOOPBACK),
        ("localhost", "none", Access.LOOPBACK),
        ("127.0.0.1", "token", Access.TOKEN),
        ("0.0.0.0", "auto", Access.TOKEN),
        ("", "auto", Access.TOKEN),
        ("::", "token", Access.TOKEN),
        ("192.168.1.7", "none", Access.OPEN),
        ("runner.example", "auto", Access.TOKEN),
        ("127.0.0.1.example", "auto", Access.TOKEN),
    ],
)
def test_the_address_decides_unless_told(host: str, auth: str, expected: Access) -> None:
    assert access_mode(Settings(host=host, auth=auth)) is expected  # type: ignore[arg-type]


async def test_it_does_not_start_where_nobody_could_enter_or_all_could_by_mistake(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    beyond = Settings(host="0.0.0.0")
    with pytest.raises(SetupProblem, match="seatrial token create"):
        await check_access(beyond, store.tokens, NOON)
    await store.tokens.save(NewToken(name="old", role=Role.ADMIN, fingerprint="a", expires_at=NOON), NOON - MINUTE)
    with pytest.raises(SetupProblem, match="SEATRIAL_AUTH=none"):
        await check_access(beyond, store.tokens, NOON)
    await store.tokens.save(NewToken(name="new", role=Role.VIEWER, fingerprint="b"), NOON)
    assert await check_access(beyond, store.tokens, NOON) is Access.TOKEN
    assert not _ours(caplog)
    with caplog.at_level(logging.WARNING):
        assert await check_access(Settings(host="0.0.0.0", auth="none"), MemoryStore().tokens, NOON) is Access.OPEN
    assert "EVERYBODY" in caplog.text


async def test_on_loopback_it_starts_without_a_token_and_says_how_to_make_one(caplog: pytest.LogCaptureFixture) -> None:
    assert await check_access(Settings(host="127.0.0.1"), MemoryStore().tokens, NOON) is Access.LOOPBACK
    assert not _ours(caplog)
    assert await check_access(Settings(host="127.0.0.1", auth="token"), MemoryStore().tokens, NOON) is Access.TOKEN
    assert "seatrial token create" in caplog.text


def test_names_that_only_look_like_loopback_are_not() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "LOCALHOST"))
    assert not any(is_loopback(host) for host in ("", "0.0.0.0", "::", "localhost.example", "127.1", "10.0.0.1"))


@pytest.mark.parametrize(
    ("method", "path", "role"),
    [
        ("GET", "/", None),
        ("HEAD", "/", None),
        ("GET", "/health", None),
        ("GET", "/ready", None),
        ("GET", "/assets/index.js", None),
        ("GET", "/jobs/3", None),
        ("POST", "/jobs/3", Role.USER),
        ("GET", "/metrics", Role.VIEWER),
        ("GET", "/docs", Role.VIEWER),
        ("GET", "/docs/static/x.js", Role.VIEWER),
        ("GET", "/openapi.json", Role.VIEWER),
        ("GET", "/api/tasks", Role.VIEWER),
        ("POST", "/api/tasks", Role.USER),
        ("GET", "/api/v1/jobs", Role.VIEWER),
        ("OPTIONS", "/api/v1/jobs", Role.VIEWER),
        ("DELETE", "/api/v1/jobs/3", Role.USER),
        ("PROPFIND", "/api/v1/jobs", Role.USER),
        ("GET", "/api/v1/tokens", Role.ADMIN),
        ("DELETE", "/api/v1/tokens/3", Role.ADMIN),
        ("GET", "/api/v1/keys", Role.ADMIN),
        ("PUT", "/api/v1/keys/OPENAI_API_KEY", Role.ADMIN),
        ("POST", "/api/v1/datasets/import", Role.ADMIN),
        ("POST", "/api/v1/datasets", Role.USER),
        ("GET", "/api/v1/session", None),
        ("POST", "/api/v1/session", None),
        ("DELETE", "/api/v1/session", None),
        ("PUT", "/api/v1/session", Role.USER),
        ("GET", "/api/v1/session/other", Role.VIEWER),
        # read as strictly as any router could
        ("GET", "//api/v1/jobs", Role.VIEWER),
        ("GET", "/./api/v1/jobs", Role.VIEWER),
        ("GET", "/API/v1/tokens", Role.ADMIN),
        ("GET", "/api//v1/keys/", Role.ADMIN),
        ("GET", "/assets/../api/v1/jobs", Role.VIEWER),
    ],
)
def test_the_role_that_is_needed(method: str, path: str, role: Role | None) -> None:
    assert needed_role(method, path) is role


def test_lifetimes() -> None:
    assert lifetime("30d") == timedelta(days=30)
    assert lifetime("12h") == timedelta(hours=12)
    assert lifetime("never") is None
    for wrong in ("", "30", "d", "0d", "-1d", "1y", "9999w", "٣d", "1d "):
        with pytest.raises(InvalidInput):
            lifetime(wrong)
