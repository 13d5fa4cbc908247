"""A page of another site against a person who has signed in: planted cookies, frames, and what browsers guess."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from seatrial.domain.token import Role
from tests.api_in_process import URL, Api, api_open, bearer

SESSION, KEYS = "/api/v1/session", "/api/v1/keys"
OURS = {"Origin": URL}
COOKIE = "seatrial_session"


@pytest.fixture
async def locked(tmp_path: Path) -> AsyncIterator[Api]:
    async with api_open(tmp_path, _env_file=None, auth="token") as api:
        yield api


async def signed_in(api: Api, role: Role) -> str:
    secret = await api.token(role, name=f"{role}")
    answer = await api.client.post(SESSION, json={"token": secret}, headers=OURS)
    assert answer.status_code == 200
    cookie = answer.cookies[COOKIE]
    api.client.cookies.clear()
    return cookie


async def status(api: Api, cookie: str, **headers: str) -> int:
    return (await api.client.get(KEYS, headers={"Cookie": cookie, **headers})).status_code


async def test_a_planted_cookie_is_not_what_a_person_is_signed_in_by(locked: Api) -> None:
    """Fixation: another port of the machine can plant one, since cookies know no ports."""
    planted = await signed_in(locked, Role.VIEWER)
    secret = await locked.token(Role.ADMIN, name="person")
    headers = {**OURS, "Cookie": f"{COOKIE}={planted}"}
    answer = await locked.client.post(SESSION, json={"token": secret}, headers=headers)
    assert answer.status_code == 200 and answer.cookies[COOKIE] != planted
    locked.client.cookies.clear()
    assert await status(locked, f"{COOKIE}={planted}") == 403, "it stays the viewer's"
    assert await status(locked, f"{COOKIE}={answer.cookies[COOKIE]}") == 200


FORGED = {
    "empty": "",
    "a guess": "admin",
    "a token": "{secret}",
    "cut": "{cookie:.60}",
    "longer": "{cookie}x",
    "in quotes, cut": '"{cookie:.60}"',
    "turned letters": "{swapped}",
}


@pytest.mark.parametrize("what", FORGED)
async def test_no_other_cookie_is_a_session(locked: Api, what: str) -> None:
    cookie = await signed_in(locked, Role.ADMIN)
    secret = await locked.token(Role.ADMIN, name="other")
    forged = FORGED[what].format(cookie=cookie, secret=secret, swapped=cookie.swapcase())
    assert await status(locked, f"{COOKIE}={forged}") == 401


@pytest.mark.parametrize("name", ["Seatrial_Session", "seatrial_session ;x", "__Host-seatrial_session", "session"])
async def test_no_other_name_is_the_cookie(locked: Api, name: str) -> None:
    cookie = await signed_in(locked, Role.ADMIN)
    assert await status(locked, f"{name}={cookie}") == 401
    assert await status(locked, f"{COOKIE}={cookie}") == 200


FOREIGN = {
    "another site": {"Origin": "http://evil.example"},
    "a sandboxed frame": {"Origin": "null"},
    "another port": {"Origin": "http://127.0.0.1:3000"},
    "https of the same name": {"Origin": "https://127.0.0.1:8000"},
    "the same site": {"Sec-Fetch-Site": "same-site"},
    "a browser that says nothing": {},
    "the old header alone": {"Referer": f"{URL}/"},
    "the old header of another": {"Referer": "http://evil.example/", "X-Requested-With": "XMLHttpRequest"},
}


@pytest.mark.parametrize("what", FOREIGN)
async def test_with_a_cookie_only_our_own_page_changes_anything(locked: Api, what: str) -> None:
    cookie = await signed_in(locked, Role.ADMIN)
    headers = {"Cookie": f"{COOKIE}={cookie}", **FOREIGN[what]}
    body = {"value": "sk-1234567890"}
    answer = await locked.client.put(f"{KEYS}/OPENAI_API_KEY", json=body, headers=headers)
    if what == "https of the same name":  # behind a proxy that ends TLS, this is the person's own page
        assert answer.status_code == 204
        return
    assert answer.status_code == 403
    assert (await locked.client.delete(SESSION, headers=headers)).status_code == 403, "nor signs anybody out"


async def test_our_own_page_does(locked: Api) -> None:
    cookie = await signed_in(locked, Role.ADMIN)
    for own in (OURS, {"Sec-Fetch-Site": "same-origin"}):
        headers = {"Cookie": f"{COOKIE}={cookie}", **own}
        answer = await locked.client.put(f"{KEYS}/OPENAI_API_KEY", json={"value": "sk-1234567890"}, headers=headers)
        assert answer.status_code == 204


async def test_nobody_is_signed_in_from_another_site(locked: Api) -> None:
    """As the attacker, so that what the person then uploads is the attacker's to read."""
    secret = await locked.token(Role.USER)
    for foreign in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = await locked.client.post(SESSION, json={"token": secret}, headers=foreign)
        assert answer.status_code == 403 and "set-cookie" not in answer.headers


ANSWERS = ["/", "/health", KEYS, "/api/v1/nothing", "/api/tasks", "/docs", "/openapi.json", SESSION]


@pytest.mark.parametrize("path", ANSWERS)
async def test_no_answer_can_be_framed_guessed_or_embedded(locked: Api, path: str) -> None:
    secret = await locked.token(Role.ADMIN)
    for headers in ({}, bearer(secret), {"Origin": "http://evil.example"}):
        told = (await locked.client.get(path, headers=headers)).headers
        assert told["x-frame-options"] == "DENY" and "frame-ancestors 'none'" in told["content-security-policy"]
        assert told["x-content-type-options"] == "nosniff" and told["referrer-policy"] == "no-referrer"
        assert told["cross-origin-resource-policy"] == told["cross-origin-opener-policy"] == "same-origin"
        assert "access-control-allow-origin" not in told
        assert "'unsafe-eval'" not in told["content-security-policy"]
