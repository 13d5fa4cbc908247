"""How each engine is told about system calls: Docker by text, Podman by a file, a Podman elsewhere not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from seatrial.sandboxes.docker.seccomp import Profiles

DOCKER: dict[str, Any] = {"SecurityOptions": ["name=seccomp,profile=default"]}
PODMAN: dict[str, Any] = {**DOCKER, "BuildahVersion": "1.28.2"}


def _profile(option: str) -> dict[str, Any]:
    kind, _, value = option.partition("=")
    assert kind == "seccomp"
    profile: dict[str, Any] = json.loads(value if value.startswith("{") else Path(value).read_text())
    return profile


def test_docker_takes_text(tmp_path: Path) -> None:
    for shared in (tmp_path, None):
        profiles = Profiles(DOCKER, shared)
        assert _profile(*profiles.agent(["CAP_CHOWN"]))["defaultAction"] == "SCMP_ACT_ERRNO"
        assert _profile(*profiles.sidecar)["defaultAction"] == "SCMP_ACT_ALLOW"
        assert "stricter than Docker's" in profiles.description and profiles.not_applied == ()
    assert list(tmp_path.iterdir()) == []


def test_without_a_packaged_profile_the_engines_own_holds_and_that_is_told(tmp_path: Path) -> None:
    profiles = Profiles(DOCKER, tmp_path, packaged=tmp_path / "none.json")
    assert profiles.agent(["CAP_CHOWN"]) == []
    assert profiles.description == "seccomp: the engine's default profile"
    assert any("socket families" in line for line in profiles.not_applied)


def test_the_filter_is_for_the_engines_processor() -> None:
    for machine, name in (("x86_64", "SCMP_ARCH_X86_64"), ("aarch64", "SCMP_ARCH_AARCH64")):
        profiles = Profiles({**DOCKER, "Architecture": machine}, None)
        assert name in _profile(*profiles.agent([]))["architectures"]
        assert name in _profile(*profiles.sidecar)["architectures"]


def test_podman_takes_files(tmp_path: Path) -> None:
    profiles = Profiles(PODMAN, tmp_path / "seccomp")
    agent, sidecar = _profile(*profiles.agent(["CAP_CHOWN"])), _profile(*profiles.sidecar)
    refused = [name for rule in agent["syscalls"] if rule["action"] == "SCMP_ACT_ERRNO" for name in rule["names"]]
    assert {"unshare", "mount", "setns"} <= set(refused)
    assert sidecar["defaultAction"] == "SCMP_ACT_ALLOW"
    assert "stricter than Docker's" in profiles.description and profiles.not_applied == ()
    assert len(list((tmp_path / "seccomp").iterdir())) == 2
    assert Profiles(PODMAN, tmp_path / "seccomp").sidecar == profiles.sidecar


def test_podman_elsewhere_keeps_its_own_and_that_is_told() -> None:
    profiles = Profiles(PODMAN, None)
    assert profiles.agent(["CAP_CHOWN"]) == [] and profiles.sidecar == []
    assert profiles.description == "seccomp: the engine's default profile"
    assert any("user namespaces" in line for line in profiles.not_applied)


def test_engine_without_seccomp_is_told() -> None:
    for options in ([], ["name=seccomp,profile=unconfined"]):
        profiles = Profiles({"SecurityOptions": options}, None)
        assert profiles.description == ""
        assert profiles.not_applied == ("seccomp: the engine has none",)
