"""A dataset registry sends the service neither to files of this machine nor closer to it than the registry is."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.adapters.registry_harbor import load_registry, open_dataset
from seatrial.adapters.registry_reach import Nearness, Reach, nearness
from seatrial.errors import InvalidInput, NotFound, SeatrialError
from tests.task_files import write_task


class Site:
    """Answers with a registry, or with a redirect; remembers what it was asked for."""

    def __init__(self, address: str) -> None:
        self.asked: list[str] = []
        self.redirects: dict[str, str] = {}
        self.rows: list[dict[str, Any]] = []
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                target = site.redirects.get(self.path)
                body = json.dumps(site.rows).encode()
                self.send_response(302 if target else 200)
                if target:
                    self.send_header("Location", target)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.url = f"http://{address}:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site("127.0.0.1")
    yield site
    site.server.shutdown()
    site.server.server_close()


@pytest.fixture
def inner() -> Iterator[Site]:
    """A service of this machine that only the machine should ask."""
    site = Site("127.0.0.2")
    yield site
    site.server.shutdown()
    site.server.server_close()


def names(url: str) -> list[dict[str, Any]]:
    return [{"name": "set", "version": "1", "tasks": [{"name": "one", "path": "one", "git_url": url}]}]


@pytest.mark.parametrize("where", ["{inner}/secret", "file:///etc/passwd", "ftp://127.0.0.2/x", "//127.0.0.2/x"])
async def test_a_redirect_to_elsewhere_is_not_followed(site: Site, inner: Site, where: str) -> None:
    site.redirects["/registry.json"] = where.replace("{inner}", inner.url)
    with pytest.raises(SeatrialError):
        await load_registry(f"{site.url}/registry.json", anywhere=False)
    assert inner.asked == []


async def test_a_redirect_on_the_same_host_is(site: Site) -> None:
    site.redirects["/registry.json"] = "/moved.json"
    site.rows = names("https://example.org/x")
    assert (await load_registry(f"{site.url}/registry.json", anywhere=False)).find("set").version == "1"
    assert site.asked == ["/registry.json", "/moved.json"]


@pytest.mark.parametrize("url", ["file://{place}", "ssh://127.0.0.1/x", "git://127.0.0.1/x", "ext::sh -c id", "/etc"])
async def test_a_service_fetches_no_repository_by_another_way_than_http(site: Site, tmp_path: Path, url: str) -> None:
    site.rows = names(url.replace("{place}", str(tmp_path)))
    with pytest.raises(InvalidInput):
        async with open_dataset(f"{site.url}/registry.json", "set", anywhere=False):
            pass


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x", "http://[::1]:9/x", "http://localhost:9/x", "http://0:9/x",
    "http://10.0.0.1/x", "http://192.168.1.1/x", "http://[fd00::1]/x", "http://169.254.169.254/x",
    "http://[::ffff:127.0.0.1]:9/x", "http://2130706433:9/x"])  # fmt: skip
def test_a_registry_of_the_internet_leads_to_no_inner_address(url: str) -> None:
    with pytest.raises(InvalidInput, match="closer"):
        Reach(Nearness.PUBLIC).admit(url)


def test_a_clouds_metadata_is_out_of_reach_for_every_registry() -> None:
    with pytest.raises(InvalidInput):
        Reach(Nearness.THIS_MACHINE).admit("http://169.254.169.254/x")


def test_a_registry_of_the_operators_network_may_use_that_network() -> None:
    assert Reach.of("http://10.0.0.5/registry.json") == Reach(Nearness.PRIVATE)
    assert Reach(Nearness.PRIVATE).admit("http://10.0.0.1/x") == "http.curloptResolve=10.0.0.1:80:10.0.0.1"
    assert Reach(Nearness.PUBLIC).admit("https://1.1.1.1/x").endswith("1.1.1.1:443:1.1.1.1")
    assert nearness("1.1.1.1") is Nearness.PUBLIC


async def test_a_repository_that_redirects_is_not_followed(site: Site, inner: Site) -> None:
    path = "/repository/info/refs?service=git-upload-pack"
    site.redirects[path] = f"{inner.url}/repository/info/refs?service=git-upload-pack"
    site.rows = names(f"{site.url}/repository")
    with pytest.raises(NotFound, match="could not be fetched"):
        async with open_dataset(f"{site.url}/registry.json", "set", anywhere=False):
            pass
    assert site.asked == ["/registry.json", path] and inner.asked == []
    with pytest.raises(NotFound):  # at the command line, whose user reaches it anyway
        async with open_dataset(f"{site.url}/registry.json", "set"):
            pass
    assert inner.asked != []


async def test_the_operators_own_file_names_folders(tmp_path: Path) -> None:
    write_task(tmp_path, "one")
    row = {"name": "set", "version": "1", "tasks": [{"name": "one", "path": "one"}]}
    (tmp_path / "registry.json").write_text(json.dumps([row]))
    async with open_dataset(str(tmp_path / "registry.json"), "set", anywhere=False) as found:
        assert [path.name for path in found.paths] == ["one"]
