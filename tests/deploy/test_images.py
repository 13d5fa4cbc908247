"""The images of the Dockerfile, built from a bootstrapped base, and what each may do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.command_line import ROOT
from tests.deploy.conftest import Machine
from tests.deploy.talk import Talk
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.engine, pytest.mark.timeout(1800)]

_RESTRICTED = ("--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges")
_VERSIONS = "import importlib.metadata as m; print('\\n'.join(f'{d.name}=={d.version}' for d in m.distributions()))"


@contextmanager
def container(machine: Machine, *arguments: str | Path) -> Iterator[str]:
    number = machine.docker("run", "--detach", *arguments)
    try:
        yield number
    finally:
        machine.docker("rm", "--force", "--volumes", number)


def test_the_api_needs_no_root_no_privilege_and_no_writable_root(images: Machine) -> None:
    with container(images, *_RESTRICTED, "--env=SEATRIAL_AUTH=none", "seatrial-api") as api:
        until(lambda: _health(images, api) == "healthy", "the API is healthy", 120)
        assert images.docker("exec", api, "id", "--user") == "60999"
        written = images.docker("exec", api, "sh", "-c", "touch /x /opt/seatrial/x && echo yes", check=False)
        assert written == ""
        assert images.docker("exec", api, "sh", "-c", "ls /run/secrets; command -v buildah crun", check=False) == ""


def test_the_api_does_not_start_open_to_everybody(images: Machine) -> None:
    done = images.docker("run", "--rm", *_RESTRICTED, "seatrial-api", check=False)
    assert "is up" not in done


def test_every_package_in_the_image_is_the_locked_one(images: Machine) -> None:
    inside = images.docker("run", "--rm", "--entrypoint=python3", "seatrial-api", "-c", _VERSIONS).splitlines()
    locked = set(re.findall(r"(?m)^([A-Za-z0-9._-]+==[^ ;\\]+)", (ROOT / "requirements.lock").read_text()))
    known = {_normal(line) for line in locked} | {_normal(line) for line in inside if line.startswith("seatrial==")}
    assert {_normal(line) for line in inside} - known == set()
    assert len(inside) > 50
    assert not [line for line in inside if line.startswith(("pytest", "mypy", "moto"))]


def test_the_worker_runs_every_sandbox_tool(images: Machine) -> None:
    capabilities = [f"--cap-add={name}" for name in ("SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE")]
    opened = [f"--security-opt={name}=unconfined" for name in ("seccomp", "apparmor", "systempaths")]
    told = images.docker("run", "--rm", *capabilities, *opened, "seatrial-worker", "doctor", check=False)
    assert told.splitlines()[0] == "oci: works"


def test_it_serves_as_terminal_bench_server_is_started(images: Machine, tmp_path: Path) -> None:
    """``docker run -p 8080:8080 -v …docker.sock --env-file .env IMAGE``; trials run in the engine's containers."""
    (tmp_path / ".env").write_text("SEATRIAL_AUTH=none\nCONTAINER_NETWORK_MODE=none\nLOG_LEVEL=INFO\n")
    socket = f"{images.engine.socket_path}:/var/run/docker.sock"
    given = ("--publish=8080:8080", f"--volume={socket}", f"--env-file={tmp_path / '.env'}")
    with container(images, *given, "seatrial"):
        talk = Talk(images, "http://127.0.0.1:8080")
        until(lambda: talk.status("/ready") == 200, "ready", 180)
        assert talk.json("/health") == {"status": "healthy", "service": "Terminal-Bench"}
        talk.text("/api/v1/samples", {})
        [trial] = talk.run({"tasks": ["answer-file"], "agents": [{"name": "oracle"}]})
        assert trial["outcome"] == "passed", trial["result"]


def _health(machine: Machine, number: str) -> str:
    [found] = json.loads(machine.docker("inspect", number))
    return str(found["State"]["Health"]["Status"])


def _normal(line: str) -> str:
    name, _, version = line.partition("==")
    return f"{re.sub(r'[-_.]+', '-', name).lower()}=={version}"
