"""Who gets in: by which credential, from which page, under which name. Each refusal has a twin that is let in."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from seatrial.domain.token import Role, fresh_secret
from tests.api_in_process import URL, Api, api_open, bearer
from tests.waiting import LIMIT_SEC

KEYS = "/api/v1/keys"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    """Nobody is asked for a token: it listens on loopback."""
    async with api_open(tmp_path, allowed_hosts="runner.example", cors_origins="https://page.example") as api:
        yield api


@pytest.fixture
async def locked(tmp_path: Path) -> AsyncIterator[Api]:
    """Everybody is asked for a token."""
    async with api_open(tmp_path, auth="token", cors_origins="https://page.example") as api:
        yield api


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8000", "127.0.0.1", "localhost:8000", "LOCALHOST", "[::1]:8000", "runner.example", "localhost:9999"],
)
async def test_our_own_names_are_known(api: Api, host: str) -> None:
    assert (await api.client.get(KEYS, headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "localhost.",
        "127.1",
        "2130706433",
        "0.0.0.0:8000",
        "[::ffff:127.0.0.1]",
        "localhost@evil.example",
        "evil.example#127.0.0.1",
        "127.0.0.1:8000, evil.example",
        "localhost:",
        "",
    ],
)
async def test_any_other_name_is_refused_for_every_path(api: Api, host: str) -> None:
    for path in (KEYS, "/health", "/"):
        assert (await api.client.get(path, headers={"Host": host})).status_code == 421


async def test_two_host_headers_are_refused(api: Api) -> None:
    headers = [("Host", "127.0.0.1:8000"), ("Host", "evil.example")]
    assert (await api.client.get("/health", headers=headers)).status_code == 421


FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:3000"},
    {"Origin": "http://127.0.0.1:8000.evil.example"},
    {"Origin": "https://page.example.evil.example"},
    {"Origin": "http://page.example"},
    {"Origin": "file://127.0.0.1:8000"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
]
OWN = [
    {},
    {"Origin": URL},
    {"Origin": "https://page.example"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
async def test_pages_of_other_sites_are_refused_where_no_token_is_asked_for(api: Api, headers: dict[str, str]) -> None:
    for method in ("GET", "POST", "DELETE"):
        answer = await api.client.request(method, KEYS, headers=headers)
        assert answer.status_code == 403, method
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("headers", OWN, ids=str)
async def test_our_own_page_programs_and_listed_origins_are_not(api: Api, headers: dict[str, str]) -> None:
    assert (await api.client.get(KEYS, headers=headers)).status_code == 200
    put = await api.client.put(f"{KEYS}/OPENAI_API_KEY", json={"value": "sk-1"}, headers=headers)
    assert put.status_code == 204


async def test_a_link_on_another_site_may_open_our_page_but_not_act(api: Api) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert (await api.client.get("/health", headers=link)).status_code == 200
    assert (await api.client.post(KEYS, headers=link)).status_code == 403


async def test_a_listed_origin_may_ask_ahead_and_read_and_no_other(api: Api) -> None:
    ahead = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "authorization"}
    granted = await api.client.options(KEYS, headers={"Origin": "https://page.example", **ahead})
    assert granted.status_code == 204
    assert granted.headers["access-control-allow-origin"] == "https://page.example"
    assert granted.headers["access-control-allow-credentials"] == "true"
    assert "PUT" in granted.headers["access-control-allow-methods"]
    assert "Authorization" in granted.headers["access-control-allow-headers"]
    answer = await api.client.get("/health", headers={"Origin": "https://page.example"})
    assert (answer.headers["access-control-allow-origin"], answer.headers["vary"]) == ("https://page.example", "Origin")
    refused = await api.client.options(KEYS, headers={"Origin": "https://evil.example", **ahead})
    assert refused.status_code == 403
    assert not [name for name in refused.headers if name.startswith("access-control")]


async def test_any_origin_counts_only_with_tokens_and_never_with_credentials(tmp_path: Path) -> None:
    anywhere = {"Origin": "https://any.example"}
    async with api_open(tmp_path / "a", cors_origins="*") as api:
        assert (await api.client.get(KEYS, headers=anywhere)).status_code == 403
    async with api_open(tmp_path / "b", cors_origins="*", auth="token") as api:
        secret = await api.token(Role.ADMIN)
        answer = await api.client.get(KEYS, headers={**anywhere, **bearer(secret)})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "*")
        assert "access-control-allow-credentials" not in answer.headers
        by_browser = {"Authorization": f"Basic {base64.b64encode(f'{secret}:'.encode()).decode()}"}
        assert (await api.client.get(KEYS, headers=by_browser)).status_code == 200
        assert (await api.client.get(KEYS, headers={**anywhere, **by_browser})).status_code == 403


async def test_a_connection_from_elsewhere_is_refused_whatever_name_it_uses(api: Api) -> None:
    import httpx

    transport = httpx.ASGITransport(api.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://192.168.1.7:8000") as client:
        answer = await client.get("/health", headers={"Host": "localhost:8000"})
    assert answer.status_code == 403
    assert (await api.client.get("/health")).status_code == 200


@pytest.mark.parametrize("template", ["Bearer {}", "bearer {}", "basic-user", "basic-word"])
async def test_a_token_is_read_from_wherever_it_can_be_put(locked: Api, template: str) -> None:
    secret = await locked.token(Role.ADMIN)

    def header(value: str) -> dict[str, str]:
        if template.startswith("basic"):
            pair = f"{value}:" if template == "basic-user" else f"me:{value}"
            return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        return {"Authorization": template.format(value)}

    assert (await locked.client.get(KEYS, headers=header(secret))).status_code == 200
    for wrong in (fresh_secret(), secret[:-1], secret + "x", secret.upper(), "", "st_", "*"):
        answer = await locked.client.get(KEYS, headers=header(wrong))
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json()["error"]["code"] == "unauthenticated"


async def test_expired_and_revoked_tokens_are_refused(locked: Api) -> None:
    store, clock = locked.service.installation.store, locked.service.installation.clock
    late = await locked.token(Role.ADMIN, life=timedelta(seconds=-1))
    good = await locked.token(Role.ADMIN, name="good", life=timedelta(minutes=1))
    assert (await locked.client.get(KEYS, headers=bearer(late))).status_code == 401
    assert (await locked.client.get(KEYS, headers=bearer(good))).status_code == 200
    [token] = [token for token in await store.tokens.all() if token.name == "good"]
    await store.tokens.revoke(token.id, clock())
    assert (await locked.client.get(KEYS, headers=bearer(good))).status_code == 401


async def test_the_last_use_is_written_down_but_not_each(locked: Api) -> None:
    store = locked.service.installation.store
    secret = await locked.token(Role.ADMIN)
    await locked.client.get(KEYS, headers=bearer(secret))
    async with asyncio.timeout(LIMIT_SEC):
        while (first := (await store.tokens.all())[0].used_at) is None:
            await asyncio.sleep(0.01)
    for _ in range(5):
        await locked.client.get(KEYS, headers=bearer(secret))
    await locked.service.identities.close()
    assert (await store.tokens.all())[0].used_at == first


async def test_guessing_is_slowed_down_and_holds_up_nobody_who_is_known(locked: Api) -> None:
    secret = await locked.token(Role.ADMIN)
    assert (await locked.client.get(KEYS, headers=bearer(secret))).status_code == 200
    statuses = [(await locked.client.get(KEYS, headers=bearer(fresh_secret()))).status_code for _ in range(25)]
    assert statuses == [401] * 20 + [429] * 5
    answer = await locked.client.post("/api/v1/session", json={"token": fresh_secret()})
    assert answer.status_code == 429 and 0 < int(answer.headers["retry-after"]) <= 60
    assert (await locked.client.get(KEYS, headers=bearer(secret))).status_code == 200
    assert (await locked.client.get("/health", headers=bearer(fresh_secret()))).status_code == 200


async def test_every_answer_tells_browsers_to_be_careful(locked: Api) -> None:
    async def broken() -> None:
        raise RuntimeError("a fault of ours")

    locked.app.add_api_route("/api/v1/broken", broken)
    locked.client._transport.raise_app_exceptions = False  # type: ignore[attr-defined]
    secret = await locked.token(Role.ADMIN)
    for path, status in {"/health": 200, KEYS: 401, "/api/v1/broken": 500, "/api/v1/nothing": 404}.items():
        headers = {} if status == 401 else bearer(secret)
        answer = await locked.client.get(path, headers=headers)
        assert answer.status_code == status
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "script-src 'self' 'wasm-unsafe-eval';" in answer.headers["content-security-policy"]
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "server" not in answer.headers


async def test_a_store_that_does_not_answer_lets_nobody_in(locked: Api) -> None:
    secret = await locked.token(Role.ADMIN)
    assert (await locked.client.get(KEYS, headers=bearer(secret))).status_code == 200
    await locked.service.installation.store.__aexit__(None, None, None)
    answer = await locked.client.get(KEYS, headers=bearer(secret))
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")
    assert (await locked.client.get("/health")).status_code == 200
