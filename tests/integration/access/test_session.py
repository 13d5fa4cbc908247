"""The page's session, tokens and provider keys over HTTP: what is secret is shown once, or never."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from seatrial.api.gates.identity import SESSION_LIFE, Identities
from seatrial.domain.token import Role, fresh_secret
from tests.api_in_process import URL, Api, api_open, bearer

SESSION, TOKENS, KEYS = "/api/v1/session", "/api/v1/tokens", "/api/v1/keys"
OURS = {"Origin": URL}


@pytest.fixture
async def locked(tmp_path: Path) -> AsyncIterator[Api]:
    async with api_open(tmp_path, auth="token") as api:
        yield api


async def test_signing_in_sets_a_cookie_that_is_not_the_token_and_works_like_it(locked: Api) -> None:
    secret = await locked.token(Role.ADMIN, name="ada")
    assert (await locked.client.get(SESSION)).json() == {"name": None, "role": None, "auth": "token"}
    answer = await locked.client.post(SESSION, json={"token": secret}, headers=OURS)
    assert answer.json() == {"name": "ada", "role": "admin", "auth": "token"}
    written = answer.headers["set-cookie"]
    assert written.startswith("seatrial_session=") and secret not in written and secret[3:] not in written
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in written.split(";")}
    assert "Secure" not in written
    assert (await locked.client.get(SESSION)).json()["name"] == "ada"
    assert (await locked.client.get(KEYS)).status_code == 200


async def test_behind_https_the_cookie_stays_there(locked: Api) -> None:
    secret = await locked.token(Role.VIEWER)
    headers = {"Origin": "https://seatrial.example", "Host": "seatrial.example"}
    answer = await locked.client.post(SESSION, json={"token": secret}, headers=headers)
    assert "Secure" in answer.headers["set-cookie"]


async def test_with_a_cookie_only_our_own_page_may_change_anything(locked: Api) -> None:
    secret = await locked.token(Role.ADMIN)
    await locked.client.post(SESSION, json={"token": secret}, headers=OURS)
    path, body = f"{KEYS}/OPENAI_API_KEY", {"value": "sk-1234567890"}
    for foreign in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}):
        assert (await locked.client.put(path, json=body, headers=foreign)).status_code == 403, foreign
        assert (await locked.client.delete(SESSION, headers=foreign)).status_code == 403, foreign
    assert (await locked.client.get(KEYS)).json()["items"] == []
    for own in (OURS, {"Sec-Fetch-Site": "same-origin"}):
        assert (await locked.client.put(path, json=body, headers=own)).status_code == 204, own
    locked.client.cookies.clear()
    assert (await locked.client.put(path, json=body, headers=bearer(secret))).status_code == 204


async def test_a_session_ends_by_signing_out_by_revoking_and_with_time(locked: Api) -> None:
    secret = await locked.token(Role.USER)
    installation = locked.service.installation

    async def sign_in() -> str:
        await locked.client.post(SESSION, json={"token": secret}, headers=OURS)
        cookie = locked.client.cookies["seatrial_session"]
        assert (await locked.client.get("/metrics")).status_code == 200
        return cookie

    cookie = await sign_in()
    assert (await locked.client.delete(SESSION, headers=OURS)).status_code == 204
    assert "seatrial_session" not in locked.client.cookies
    stolen = {"Cookie": f"seatrial_session={cookie}"}
    assert (await locked.client.get("/metrics", headers=stolen)).status_code == 401

    cookie = await sign_in()
    later = Identities(installation.store.tokens, installation.seal, lambda: installation.clock() + SESSION_LIFE)
    sooner = Identities(installation.store.tokens, installation.seal, installation.clock)
    assert await later.by_session(cookie) is None
    assert await sooner.by_session(cookie) is not None, "another process knows it too"
    for wrong in ("", "x", cookie[:-2], cookie[::-1], secret):
        assert await sooner.by_session(wrong) is None
    await sooner.close()

    await installation.store.tokens.revoke(1, installation.clock())
    assert (await locked.client.get("/metrics")).status_code == 401
    locked.client.cookies.clear()


async def test_a_wrong_token_signs_nobody_in(locked: Api) -> None:
    for wrong in (fresh_secret(), await locked.token(Role.ADMIN, life=timedelta(seconds=-1))):
        answer = await locked.client.post(SESSION, json={"token": wrong}, headers=OURS)
        assert answer.status_code == 401 and "set-cookie" not in answer.headers and wrong not in answer.text
    assert (await locked.client.post(SESSION, json={"token": ""}, headers=OURS)).status_code == 422


async def test_without_auth_everybody_is_admin_and_told_so(tmp_path: Path) -> None:
    async with api_open(tmp_path) as api:
        state = {"name": "anonymous", "role": "admin", "auth": "none"}
        assert (await api.client.get(SESSION)).json() == state
        signed = await api.client.post(SESSION, json={"token": "anything"})
        assert signed.json() == state and "set-cookie" not in signed.headers


async def test_tokens_are_made_used_listed_and_revoked(locked: Api) -> None:
    admin = bearer(await locked.token(Role.ADMIN))
    asked = {"name": "ci", "role": "viewer", "expires": "2h"}
    made = (await locked.client.post(TOKENS, json=asked, headers=admin)).json()
    assert (made["name"], made["role"], made["valid"]) == ("ci", "viewer", True)
    assert (await locked.client.get("/metrics", headers=bearer(made["secret"]))).status_code == 200
    listed = await locked.client.get(TOKENS, headers=admin)
    assert [item["name"] for item in listed.json()["items"]] == ["ci", "admin"]
    assert made["secret"] not in listed.text and "fingerprint" not in listed.text
    assert (await locked.client.delete(f"{TOKENS}/{made['id']}", headers=admin)).status_code == 204
    assert (await locked.client.get("/metrics", headers=bearer(made["secret"]))).status_code == 401
    assert (await locked.client.delete(f"{TOKENS}/999", headers=admin)).status_code == 404
    for wrong in ({"name": ""}, {"name": "x", "role": "root"}, {"name": "x", "expires": "soon"}):
        answer = await locked.client.post(TOKENS, json=wrong, headers=admin)
        assert answer.status_code == 422 and answer.json()["error"]["field"], wrong


async def test_a_provider_key_can_be_set_and_deleted_but_not_read(locked: Api) -> None:
    admin, value = bearer(await locked.token(Role.ADMIN)), "sk-or-v1-0123456789"
    path = f"{KEYS}/OPENROUTER_API_KEY"
    assert (await locked.client.put(path, json={"value": value}, headers=admin)).status_code == 204
    listed = await locked.client.get(KEYS, headers=admin)
    assert [item["name"] for item in listed.json()["items"]] == ["OPENROUTER_API_KEY"] and value not in listed.text
    installation = locked.service.installation
    [kept] = await installation.store.provider_keys.all()
    assert value not in kept.sealed and installation.seal.open(kept.sealed) == value
    assert "OPENROUTER_API_KEY" in await installation.keys.names()
    assert (await locked.client.get(path, headers=admin)).status_code == 405
    assert (await locked.client.delete(path, headers=admin)).status_code == 204
    assert (await locked.client.delete(path, headers=admin)).status_code == 404
    for name, wrong in {
        "PATH": value,
        "openai_api_key": value,
        "SEATRIAL_SERVER_TOKEN": value,
        "OPENAI_API_BASE": value,
        "OPENAI_API_KEY": "",
        "HF_TOKEN": "a\nb",
        "XAI_API_KEY": "x" * 5000,
    }.items():
        answer = await locked.client.put(f"{KEYS}/{name}", json={"value": wrong}, headers=admin)
        assert answer.status_code == 422 and value not in answer.text, name
