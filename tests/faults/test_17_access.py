"""Fault 17: every route, every method: without a token, with a wrong one, with a lesser one; and from strange places.

The routes are those of the application itself, so a new one is asked here before anybody thinks of it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from seatrial.domain.token import Role, fingerprint, fresh_secret
from tests.api_in_process import URL, Api, api_open, bearer

METHODS = (
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "SEATRIAL",
)
SAFE = ("GET", "HEAD", "OPTIONS")
USUAL = (*SAFE, "POST", "PUT", "PATCH", "DELETE")
PAGE = ("/", "/some/file.txt", "/jobs/3", "/assets/a.js")
"""The web page's own files and addresses."""
OPEN = {
    *((method, path) for method in ("GET", "HEAD") for path in (*PAGE, "/health", "/ready")),
    *((method, "/api/v1/session") for method in ("GET", "HEAD", "POST", "DELETE")),
}
"""All that strangers may ask; anything else here would be a mistake of ours."""
ADMIN = ("/api/v1/tokens", "/api/v1/keys", "/api/v1/datasets/import")
ENDLESS = ("/api/v1/events",)
"""Streams that go on for ever once one is let in."""
_VALUES = {"digest": "sha256:" + "0" * 64, "path": "some/file.txt", "name": "OPENAI_API_KEY"}


def paths(app: FastAPI) -> Iterator[str]:
    """Each path once, its parameters filled in, and some that no route has."""
    found = {str(route.path) for route in iter_route_contexts(app.routes)}
    assert len(found) > 30, "the routes were not found"
    for template in sorted(found):
        yield re.sub(r"\{(\w+)(?::\w+)?\}", lambda part: _VALUES.get(part[1], "987654"), template)
    yield from (
        "/some/file.txt",
        "/jobs/3",
        "/assets/a.js",
        "/api",
        "/api/v1",
        "/api/v2/x",
        "/docs/static/x.js",
        "//api/v1/jobs",
    )


@pytest.fixture
async def locked(tmp_path: Path) -> AsyncIterator[Api]:
    async with api_open(tmp_path, auth="token") as api:
        yield api


async def test_strangers_get_nowhere_but_to_the_open_list(locked: Api) -> None:
    asked, opened = 0, set()
    for path in paths(locked.app):
        for method in METHODS:
            answer = await locked.client.request(method, URL + path)
            asked += 1
            if answer.status_code != 401:
                opened.add((method, path))
                assert (method, path) in OPEN or (path == "/api/v1/session" and answer.status_code == 405), (
                    method,
                    path,
                )
    assert opened >= OPEN
    assert asked > 600


async def test_what_is_no_longer_or_never_was_valid_opens_nothing_more(locked: Api) -> None:
    late = await locked.token(Role.ADMIN, life=timedelta(seconds=-1))
    revoked = await locked.token(Role.ADMIN, name="revoked")
    store, now = locked.service.installation.store, locked.service.installation.clock()
    await store.tokens.revoke((await store.tokens.all())[0].id, now)
    wrong = (bearer(late), bearer(revoked), bearer(fresh_secret()), {"Cookie": f"seatrial_session={late}"})
    for path in paths(locked.app):
        for method in ("GET", "POST", "DELETE"):
            for headers in wrong:
                if (method, path) not in OPEN:
                    answer = await locked.client.request(method, URL + path, headers=headers)
                    assert answer.status_code in (401, 429), (method, path, answer.status_code)


async def test_a_viewer_only_looks_and_a_user_does_not_administrate(locked: Api) -> None:
    viewer, user, admin = [await locked.token(role) for role in (Role.VIEWER, Role.USER, Role.ADMIN)]
    for path in paths(locked.app):
        is_admins = path.startswith(ADMIN)
        for method in METHODS:
            is_open = (method, path) in OPEN
            by_viewer = await status(locked, viewer, method, path)
            if method not in USUAL:
                assert by_viewer == 405, (method, path)
            elif is_admins or (method not in SAFE and not is_open):
                assert by_viewer == 403, (method, path, by_viewer)
                if is_admins:
                    assert await status(locked, user, method, path) == 403, (method, path)
                continue
            elif path not in ENDLESS:
                assert by_viewer not in (401, 403), (method, path)
    for method, path, secret in (
        ("GET", "/api/v1/tokens", admin),
        ("GET", "/api/v1/keys", admin),
        ("POST", "/api/v1/jobs/987654/cancel", user),
        ("DELETE", "/api/v1/jobs/987654", user),
        ("DELETE", "/api/v1/keys/OPENAI_API_KEY", admin),
    ):
        assert await status(locked, secret, method, path) in (200, 404), (method, path)


async def status(api: Api, secret: str, method: str, path: str) -> int:
    if path in ENDLESS and method in ("GET", "HEAD"):
        return 200
    return (await api.client.request(method, URL + path, headers=bearer(secret))).status_code


async def test_no_token_is_in_the_store(tmp_path: Path) -> None:
    async with api_open(tmp_path, auth="token") as api:
        secrets = [await api.token(role) for role in Role]
        made = await api.client.post("/api/v1/tokens", json={"name": "x"}, headers=bearer(secrets[-1]))
        secrets.append(made.json()["secret"])
        cookies = await api.client.post(
            "/api/v1/session", json={"token": secrets[0]}, headers={"Origin": "http://127.0.0.1:8000"}
        )
        assert cookies.status_code == 200
        for secret in secrets:
            assert (await api.client.get("/metrics", headers=bearer(secret))).status_code == 200
        kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for secret in secrets:
        assert fingerprint(secret).encode() in kept
        assert secret.encode() not in kept and secret[3:].encode() not in kept


PLACES = [
    ({"Host": "evil.example"}, 421),
    ({"Host": "127.0.0.1.evil.example:8000"}, 421),
    ({"Host": "evil.example", "Origin": "http://evil.example"}, 421),
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": "http://localhost:3000"}, 403),
]


@pytest.mark.parametrize(("headers", "expected"), PLACES, ids=str)
async def test_without_auth_other_sites_and_names_get_nowhere(
    tmp_path: Path, headers: dict[str, str], expected: int
) -> None:
    async with api_open(tmp_path) as api:
        for path in paths(api.app):
            for method in USUAL:
                answer = await api.client.request(method, URL + path, headers=headers)
                assert answer.status_code == expected, (method, path, answer.status_code)
        own = {"Host": "localhost:8000", "Origin": "http://localhost:8000"}
        assert (await api.client.get("/api/v1/keys", headers=own)).status_code == 200
        assert (await api.client.get("/api/v1/keys")).status_code == 200
