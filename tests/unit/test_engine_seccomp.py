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


def test_docker_has_a_profile_for_the_agent_and_takes_text_for_the_sidecar(tmp_path: Path) -> None:
    for shared in (tmp_path, None):
        profiles = Profiles(DOCKER, shared)
        assert profiles.agent(["CAP_CHOWN"]) == []
        assert _profile(*profiles.sidecar)["defaultAction"] == "SCMP_ACT_ALLOW"
        assert profiles.description == "seccomp: the engine's default profile"
        assert profiles.not_applied == ()
    assert list(tmp_path.iterdir()) == []


def test_podman_takes_files(tmp_path: Path) -> None:
    profiles = Profiles(PODMAN, tmp_path / "seccomp")
    agent, sidecar = _profile(*profiles.agent(["CAP_CHOWN"])), _profile(*profiles.sidecar)
    refused = [name for rule in agent["syscalls"] if rule["action"] == "SCMP_ACT_ERRNO" for name in rule["names"]]
    assert {"unshare", "mount", "setns"} <= set(refused)
    assert sidecar["defaultAction"] == "SCMP_ACT_ALLOW"
    assert "as strict as Docker's" in profiles.description and profiles.not_applied == ()
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
