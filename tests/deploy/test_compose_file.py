"""``compose.yaml`` as ``docker compose`` reads it. ``test_compose_up`` brings it up."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import ROOT


def configured(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["docker", "compose", *arguments, "config", "--format", "json"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What compose reads of a checkout, with the ``.env`` that ``scripts/new-env.sh`` makes."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("compose.yaml", ".env.example"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    subprocess.run(["sh", "scripts/new-env.sh"], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def services(checkout: Path) -> dict[str, Any]:
    done = configured(checkout)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["services"]
    return found


def test_it_has_every_part(services: dict[str, Any]) -> None:
    assert set(services) == {"postgres", "redis", "s3", "api", "worker"}
    ports = {(port["host_ip"], port["published"], port["target"]) for port in services["api"]["ports"]}
    assert ports == {("127.0.0.1", "8000", 8000), ("127.0.0.1", "3000", 8000)}


def test_there_is_no_password_by_default(checkout: Path, tmp_path: Path) -> None:
    shutil.copy(checkout / "compose.yaml", tmp_path)
    (tmp_path / ".env").write_text("")
    refused = configured(tmp_path)
    assert refused.returncode != 0
    assert "new-env.sh" in refused.stderr


def test_the_made_passwords_differ_and_only_the_owner_reads_them(checkout: Path) -> None:
    lines = [line for line in (checkout / ".env").read_text().splitlines() if line and not line.startswith("#")]
    values = dict(line.split("=", 1) for line in lines)
    assert len(values) == 4 == len(set(values.values()))
    assert min(map(len, values.values())) == 48
    assert (checkout / ".env").stat().st_mode & 0o077 == 0
    again = subprocess.run(["sh", "scripts/new-env.sh"], cwd=checkout, capture_output=True, text=True, check=False)
    assert again.returncode == 1 and "exists" in again.stderr


def test_only_the_worker_is_privileged_and_only_the_api_has_ports(services: dict[str, Any]) -> None:
    assert [name for name, service in services.items() if service.get("privileged")] == ["worker"]
    assert [name for name, service in services.items() if service.get("ports")] == ["api"]
    for name, service in services.items():
        if name != "worker":
            assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not [volume for volume in service.get("volumes", []) if "docker.sock" in volume.get("source", "")]
    assert services["api"]["read_only"] is True and services["api"]["cap_drop"] == ["ALL"]


def test_stores_are_on_a_network_without_a_way_out(checkout: Path, services: dict[str, Any]) -> None:
    networks = json.loads(configured(checkout).stdout)["networks"]
    assert networks["inside"]["internal"] is True
    for name in ("postgres", "redis", "s3"):
        assert set(services[name]["networks"]) == {"inside"}
        assert "healthcheck" in services[name]


def test_api_and_worker_agree(services: dict[str, Any]) -> None:
    for name in ("DATABASE_URL", "SEATRIAL_BROKER_URL", "SEATRIAL_SECRET_KEY", "SEATRIAL_S3_ENDPOINT"):
        assert services["api"]["environment"][name] == services["worker"]["environment"][name]
