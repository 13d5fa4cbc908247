"""A page of another site uses its visitor's browser against a service on the visitor's machine.

Nobody is asked for a token on loopback, so what the browser says about the asking page is all there is. Every route of
the three APIs that changes anything is asked in the ways that a page can ask without being asked first.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from seatrial.api.gates.access import Access
from seatrial.api.gates.origins import Origins
from seatrial.settings import Settings
from tests.api_in_process import URL, Api, api_open
from tests.properties import trying

KEYS = "/api/v1/keys"
LISTED = "https://page.example"
FETCHED = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
ASKING = {
    "a form": ({"Origin": "http://evil.example", "Content-Type": "application/x-www-form-urlencoded"}, b"tasks=x"),
    "a form of text that is JSON": (
        {"Origin": "http://evil.example", "Content-Type": "text/plain"},
        b'{"tasks": ["x"], "a": "="}',
    ),
    "a form with a file": (
        {"Origin": "http://evil.example", "Content-Type": "multipart/form-data; boundary=b"},
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.zip"\r\n\r\nPK\r\n--b--\r\n',
    ),
    "a script that cannot read": ({"Origin": "http://evil.example", **FETCHED, "Content-Type": "text/plain"}, b"{}"),
    "a beacon without an origin": ({**FETCHED, "Content-Type": "text/plain"}, b"{}"),
    "a sandboxed frame": ({"Origin": "null", "Content-Type": "text/plain"}, b"{}"),
    "another port of this machine": ({"Origin": "http://127.0.0.1:3000", "Content-Type": "application/json"}, b"{}"),
    "another name of this machine": ({"Origin": "http://localhost:8000", "Content-Type": "application/json"}, b"{}"),
    "a form that opens a page": (
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
        b"",
    ),
    "no content type at all": ({"Origin": "http://evil.example"}, b'{"tasks": ["x"]}'),
}
_VALUES = {"digest": "sha256:" + "0" * 64, "path": "some/file.txt", "name": "OPENAI_API_KEY"}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with api_open(tmp_path, _env_file=None, cors_origins=LISTED, allowed_hosts="runner.example") as api:
        yield api


def changing(app: FastAPI) -> Iterator[tuple[str, str]]:
    for route in iter_route_contexts(app.routes):
        path = re.sub(r"\{(\w+)(?::\w+)?\}", lambda part: _VALUES.get(part[1], "987654"), str(route.path))
        for method in sorted(set(route.methods or ()) - {"GET", "HEAD", "OPTIONS"}):
            yield method, path


@pytest.mark.parametrize("way", ASKING)
async def test_no_other_site_changes_anything(api: Api, way: str) -> None:
    headers, body = ASKING[way]
    routes = list(changing(api.app))
    prefixes = {path.split("/")[2] for _, path in routes if path.startswith("/api/")}
    assert len(routes) > 20 and {"v1", "tasks"} <= prefixes, "the routes of all APIs were not found"
    for method, path in routes:
        answer = await api.client.request(method, path, headers=headers, content=body)
        assert answer.status_code == 403, (method, path, answer.text)
        assert "access-control-allow-origin" not in answer.headers


async def test_our_own_page_reaches_the_same_routes(api: Api) -> None:
    for headers in ({"Origin": URL}, {"Sec-Fetch-Site": "same-origin"}, {"Origin": LISTED}, {}):
        for method, path in changing(api.app):
            answer = await api.client.request(method, path, headers=headers)
            assert answer.status_code not in (401, 403, 421, 500), (method, path, answer.text)


READING = {
    "a script": {"Origin": "http://evil.example", "Sec-Fetch-Mode": "cors"},
    "an image": {**FETCHED, "Sec-Fetch-Dest": "image"},
    "a script tag": {**FETCHED, "Sec-Fetch-Dest": "script"},
    "a style sheet": {**FETCHED, "Sec-Fetch-Dest": "style"},
    "a frame": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    "an object": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "object"},
    "an event stream": {"Origin": "http://evil.example", "Accept": "text/event-stream"},
    "a neighbour's event stream": {"Sec-Fetch-Site": "same-site", "Accept": "text/event-stream"},
}


@pytest.mark.parametrize("way", READING)
async def test_no_other_site_reads_anything(api: Api, way: str) -> None:
    for path in (KEYS, "/api/v1/jobs", "/api/v1/events", "/api/tasks", "/metrics", "/openapi.json"):
        answer = await api.client.get(path, headers=READING[way])
        assert answer.status_code == 403, path
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


async def test_a_person_may_open_our_page_from_a_link(api: Api) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert (await api.client.get("/health", headers=link)).status_code == 200


async def test_a_websocket_is_closed_whoever_asks(api: Api) -> None:
    for origin in ("http://evil.example", URL):
        sent: list[dict[str, object]] = []

        async def receive() -> dict[str, object]:
            return {"type": "websocket.connect"}

        async def send(message: dict[str, object], sent: list[dict[str, object]] = sent) -> None:
            sent.append(message)

        headers = [(b"host", b"127.0.0.1:8000"), (b"origin", origin.encode())]
        scope = {"type": "websocket", "path": "/api/v1/events", "headers": headers, "query_string": b"", "app": api.app}
        await api.app(scope, receive, send)  # type: ignore[arg-type]
        assert [message["type"] for message in sent] == ["websocket.close"]


ORIGINS = {
    "its name at the end": "https://evil.example/https://page.example",
    "a longer name": "https://page.example.evil.example",
    "a name before it": "https://evilpage.example",
    "a name below it": "https://x.page.example",
    "another scheme": "http://page.example",
    "another port": "https://page.example:8443",
    "a user in front": "https://page.example@evil.example",
    "nothing": "null",
    "empty": "",
    "a wildcard": "*",
    "two at once": "https://page.example, https://evil.example",
    "a trailing dot": "https://page.example.",
    "half an address": "http://[::1",
    "an address in brackets": "http://[127.0.0.1]:8000",
    "a letter that looks alike": "https://p\u00e4ge.example",
    "a port that is none": "http://127.0.0.1:port",
    "a file": "file://",
    "an extension": "chrome-extension://abcdef",
}


@pytest.mark.parametrize("what", ORIGINS)
async def test_only_the_listed_origin_itself_is_let_in(api: Api, what: str) -> None:
    headers = {"Origin": ORIGINS[what].encode("latin-1")}
    ahead = {**headers, "Access-Control-Request-Method": b"PUT"}
    for answer in (await api.client.get(KEYS, headers=headers), await api.client.options(KEYS, headers=ahead)):
        assert answer.status_code == 403, answer.text
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_the_listed_origin_is(api: Api) -> None:
    for origin in (LISTED, LISTED.upper().replace("HTTPS", "https")):
        answer = await api.client.get(KEYS, headers={"Origin": origin})
        assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == origin
        assert answer.headers["vary"] == "Origin", "caches keep answers to others apart"


HOSTS = {
    "another name": "evil.example",
    "with our port": "evil.example:8000",
    "ours in front": "127.0.0.1.evil.example:8000",
    "ours in front, with a sign": "127.0.0.1@evil.example",
    "ours behind": "evil.example#127.0.0.1",
    "ours with a dot": "localhost.",
    "all addresses": "0.0.0.0:8000",
    "this machine, short": "127.1",
    "this machine, as one number": "2130706433",
    "this machine, in hexadecimal": "0x7f000001",
    "this machine, in octal": "0177.0.0.1",
    "this machine, mapped": "[::ffff:127.0.0.1]:8000",
    "this machine, in full": "[0:0:0:0:0:0:0:1]",
    "this machine, with a zone": "[::1%25lo]",
    "a service that names this machine": "127.0.0.1.nip.io",
    "a name below ours": "x.localhost",
    "one more letter": "localhostx",
    "a space": "localhost evil.example",
    "a tab": "localhost\tx",
    "a path": "localhost/evil.example",
    "an empty port": "localhost:",
    "a port that is none": "localhost:http",
    "wide digits": "１２７.0.0.1".encode().decode("latin-1"),
    "nothing": "",
}


@pytest.mark.parametrize("what", HOSTS)
async def test_a_name_that_suddenly_means_this_machine_is_not_ours(api: Api, what: str) -> None:
    """DNS rebinding: then the page's own origin and the Host header agree."""
    host = HOSTS[what].encode("latin-1")
    for path in (KEYS, "/", "/health", "/api/tasks"):
        for headers in ({"Host": host}, {"Host": host, "Origin": b"http://" + host}):
            assert (await api.client.get(path, headers=headers)).status_code == 421, path


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:9999", "[::1]:8000", "Runner.Example"])
async def test_our_own_names_are_ours(api: Api, host: str) -> None:
    assert (await api.client.get(KEYS, headers={"Host": host})).status_code == 200
    assert (await api.client.get(KEYS, headers={"Host": host, "Origin": f"http://{host}"})).status_code == 200


_GATE = Origins(Settings(_env_file=None, cors_origins=LISTED), Access.LOOPBACK)
_pieces = ["127.0.0.1", "localhost", "[::1]", "evil.example", "page.example", ":8000", ":80", ".", "@", "/", "#", "%2e"]
_pieces += ["[", "]", " ", "\t", ",", "https://", "http://", "xn--", "0x7f", "::", "\xa0", "null", "*"]


@trying(400)
@given(st.lists(st.sampled_from(_pieces), max_size=6).map("".join))
def test_no_spelling_of_a_host_or_an_origin_is_taken_for_ours(text: str) -> None:
    """Only these few are, and nothing ends the gate."""
    known = _GATE.knows_host(Headers({"host": text}))
    assert known == bool(re.fullmatch(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", text))
    asked = Headers({"host": "127.0.0.1:8000", "origin": text})
    own = re.fullmatch(r"https?://127\.0\.0\.1:8000", text)
    assert _GATE.is_foreign("POST", asked) != bool(own or text.lower() == LISTED)
