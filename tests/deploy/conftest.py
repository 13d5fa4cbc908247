"""A container engine in a network of its own, and our images in it, for the tests that run containers.

The engine has its own network namespace, so its bridges and rules meet nobody's. slirp4netns gives it a way out without
touching this machine's. One run of ``make containers`` builds the images once.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from seatrial.sandboxes.images.assembly import oci_images
from seatrial.sandboxes.options import SandboxOptions
from tests.command_line import ROOT
from tests.engine import Engine, start_engine, stop_engine
from tests.engine_fixture import image_cache
from tests.waiting import until

__all__ = ["image_cache"]
BASES = ("trixie-slim", "bookworm-slim")


@dataclass(frozen=True)
class Machine:
    """The engine, and commands beside its containers."""

    engine: Engine
    cache: Path

    def docker(self, *arguments: str | Path, check: bool = True, **environment: str) -> str:
        command = ["docker", "--host", self.engine.host, *arguments]
        return self._run(command, check, {**os.environ, "DOCKER_BUILDKIT": "1", **environment})

    def ask(self, url: str, token: str = "", body: str = "") -> str:
        """The status and the text of an answer, asked for in the engine's network."""
        command = ["nsenter", "--net", "--target", str(self.engine.pid), sys.executable, "-m", "tests.deploy.ask"]
        return self._run([*command, url, token, body], True, dict(os.environ))

    def build(self, image: str, *arguments: str | Path) -> None:
        """Certificates and the index of this machine go in as secrets, and stay in no image."""
        bundle = Path(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"))
        secrets = [f"--secret=id=ca,src={bundle}"] if bundle.is_file() else []
        command = ("build", "--quiet", "--network=host", *secrets, "--tag", image, *arguments, ROOT)
        try:
            self.docker(*command)
        except AssertionError:  # a mirror may be away for a moment; the layers that were made are kept
            self.docker(*command)

    def base(self, name: str) -> Path:
        return next((self.cache / "images" / "bases").glob(f"debian-{name}-*.tar"))

    @staticmethod
    def _run(command: list[str | Path], check: bool, environment: dict[str, str]) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
        assert not check or done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout.strip()


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> Iterator[Machine]:
    asyncio.run(_make_bases(image_cache))
    engine = start_engine(tmp_path_factory.mktemp("apart") / "engine", apart=True)
    assert engine.pid is not None
    way_out = subprocess.Popen(
        ["slirp4netns", "--configure", "--mtu=65520", "--disable-host-loopback", str(engine.pid), "tap0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: _has_way_out(engine.pid), "the engine's network has a way out")
        machine = Machine(engine, image_cache)
        for name in BASES:
            machine.docker("import", machine.base(name), f"debian:{name}")
        yield machine
    finally:
        stop_engine(engine)
        way_out.terminate()
        way_out.wait()


@pytest.fixture(scope="session")
def images(machine: Machine) -> Machine:
    """With ``seatrial-api``, ``seatrial-worker`` and ``seatrial`` built."""
    machine.build("seatrial-api", "--target=api")
    machine.build("seatrial-worker", "--target=worker")
    machine.build("seatrial")
    return machine


def _has_way_out(pid: int | None) -> bool:
    routes = Path(f"/proc/{pid}/net/route").read_text().splitlines()[1:]
    return any(line.split()[1] == "00000000" for line in routes)


async def _make_bases(cache: Path) -> None:
    images = oci_images(SandboxOptions(cache=cache))
    for name in BASES:
        if not list((cache / "images" / "bases").glob(f"debian-{name}-*.tar")):
            await images.bootstrap.make(f"docker.io/library/debian:{name}", images.store, lambda _: None)
