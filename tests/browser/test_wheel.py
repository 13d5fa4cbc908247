"""The wheel carries the page: installed into an environment of its own, it serves it without Node."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from tests.command_line import ROOT, CommandLine
from tests.running_service import RunningService, service_up

pytestmark = [pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Installed:
    """A virtual environment with the wheel in it."""

    place: Path

    @property
    def program(self) -> Path:
        return self.place / "bin" / "seatrial"

    @property
    def package(self) -> Path:
        [found] = self.place.glob("lib/python3*/site-packages/seatrial")
        return found


@pytest.fixture(scope="module")
def installed(built_page: None, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Built and installed with what is here: libraries are lent by this environment, Seatrial is the wheel's."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    [wheel] = folder.glob("*.whl")
    place = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    into = [Path(sys.executable).with_name("uv"), "pip", "install", "--quiet", "--offline", "--no-deps"]
    subprocess.run([*into, "--python", place / "bin" / "python", wheel], check=True)
    _lend_libraries(place, folder / "libraries")
    return Installed(place)


def _lend_libraries(place: Path, shelf: Path) -> None:
    """Every library of this environment but Seatrial, which must come from the wheel alone."""
    shelf.mkdir()
    for file in Path(sysconfig.get_path("purelib")).iterdir():
        if "seatrial" not in file.name.lower() and file.suffix != ".pth":
            (shelf / file.name).symlink_to(file)
    [packages] = place.glob("lib/python3*/site-packages")
    (packages / "lent.pth").write_text(f"{shelf}\n")


@pytest.fixture
def service(installed: Installed, tmp_path: Path, image_cache: Path) -> Iterator[RunningService]:
    """In an empty folder, with nothing on the search path that could build a page."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("env", "id", "uname"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    empty = tmp_path / "empty"
    empty.mkdir()
    with CommandLine(tmp_path / "home", image_cache, empty) as cli:
        chosen = replace(cli, program=installed.program)
        with service_up(chosen, "--workers", "0", PATH=str(tools), PYTHONPATH="") as running:
            yield running


def test_the_wheel_serves_the_page_without_node(service: RunningService, installed: Installed) -> None:
    assert (installed.package / "page" / "index.html").is_file()
    assert _imported_from(installed).is_relative_to(installed.place)
    with service.client() as client:
        shell = client.get("/", headers={"Accept": "text/html"})
        assert shell.headers["content-type"].startswith("text/html")
        assert '<div id="root">' in shell.text
        assets = re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css|svg))"', shell.text)
        assert len(assets) >= 3
        for asset in assets:
            _check_asset(client.get(asset))
        assert client.get("/jobs/1", headers={"Accept": "text/html"}).text == shell.text
        assert client.get("/assets/nothing.js").status_code == 404


def test_programs_still_get_words_at_the_root(service: RunningService) -> None:
    with service.client() as client:
        assert client.get("/").json()["name"]


def _check_asset(answer: httpx.Response) -> None:
    assert answer.status_code == 200, answer.url
    assert answer.content
    kind = answer.headers["content-type"]
    assert kind.startswith(("text/javascript", "application/javascript", "text/css", "image/svg")), (answer.url, kind)


def _imported_from(installed: Installed) -> Path:
    """Where that environment finds Seatrial: were it this source, the test would show nothing."""
    asked = [installed.place / "bin" / "python", "-c", "import seatrial; print(seatrial.__file__)"]
    told = subprocess.run(asked, cwd=installed.place, check=True, capture_output=True, text=True)
    return Path(told.stdout.strip())
