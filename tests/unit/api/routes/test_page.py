"""Which file of the built page answers which address."""

from __future__ import annotations

import gzip
import os
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from seatrial.api.routes.page import Page


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    built = tmp_path / "page"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("<p>the shell</p>")
    (built / "assets" / "app-1a2b.js").write_text("run()")
    (built / "assets" / "app-1a2b.js.gz").write_bytes(gzip.compress(b"run()"))
    (built / ".sources").write_text("a sum")
    (tmp_path / "secret.txt").write_text("not part of it")
    return built


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    app.router.default = Page(folder)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page") as asking:
        yield asking


async def test_addresses_of_the_page_get_the_shell(client: httpx.AsyncClient) -> None:
    for path in ("/jobs/7", "/trials/3?step=2", "/settings"):
        answer = await client.get(path)
        assert answer.text == "<p>the shell</p>"
        assert answer.headers["cache-control"] == "no-cache"


async def test_files_come_compressed_and_may_be_kept(client: httpx.AsyncClient) -> None:
    answer = await client.get("/assets/app-1a2b.js", headers={"Accept-Encoding": "gzip"})
    assert answer.text == "run()"
    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]
    plain = await client.get("/assets/app-1a2b.js", headers={"Accept-Encoding": "identity"})
    assert plain.text == "run()"
    assert "content-encoding" not in plain.headers


@pytest.mark.parametrize("path", ["/assets/gone.js", "/api/v1/nothing", "/api/v1", "/docs/x", "/metrics", "/health/x"])
async def test_what_is_not_of_the_page_is_404(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 404


@pytest.mark.parametrize(
    "path", ["/%2e%2e/secret.txt", "/assets/%2e%2e/%2e%2e/secret.txt", "/.sources", "//secret.txt"]
)
async def test_nothing_but_the_page_is_ever_read(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert "not part of it" not in answer.text
    assert "a sum" not in answer.text


async def test_a_page_that_was_built_anew_is_served(client: httpx.AsyncClient, folder: Path) -> None:
    os.utime(folder / "index.html", (1, 1))  # two files of one tick of the clock have the same time
    assert (await client.get("/assets/app-1a2b.js")).status_code == 200
    (folder / "assets" / "app-3c4d.js").write_text("run(2)")
    assert (await client.get("/assets/app-3c4d.js")).status_code == 404
    (folder / "index.html").unlink()
    (folder / "index.html").write_text("<p>a newer shell</p>")
    assert (await client.get("/assets/app-3c4d.js")).text == "run(2)"


async def test_other_methods_get_no_page(client: httpx.AsyncClient) -> None:
    assert (await client.post("/jobs/7")).status_code == 404


def test_without_a_build_there_is_no_page(tmp_path: Path) -> None:
    assert not Page(tmp_path).is_built
