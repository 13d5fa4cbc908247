from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import SetupProblem
from seatrial.sandboxes.images.debian import debian_base, security_mirror, system_mirror
from seatrial.sandboxes.images.fetcher import VERDICT_SEC, UnreachableRegistries
from seatrial.sandboxes.images.trust import Trust


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("debian:bookworm", "bookworm"),
        ("debian:bookworm-slim", "bookworm-slim"),
        ("debian:12", "bookworm"),
        ("debian:12.7", "bookworm"),
        ("debian:12-slim", "bookworm-slim"),
        ("debian:bookworm-20240904-slim", "bookworm-slim"),
        ("debian:13-slim", "trixie-slim"),
        ("debian", "stable"),
        ("debian:stable-slim", "stable-slim"),
        ("docker.io/library/debian:sid", "sid"),
    ],
)
def test_tags_mean_suites(reference: str, name: str) -> None:
    base = debian_base(reference)
    assert base is not None
    assert base.name == name


@pytest.mark.parametrize(
    "reference",
    [
        "ubuntu:24.04",
        "python:3.12",
        "debian:jammy",
        "debian:bookworm-backports",
        "ghcr.io/x/debian:12",
        "someone/debian:12",
    ],
)
def test_everything_else_is_not_debian(reference: str) -> None:
    assert debian_base(reference) is None


def test_the_mirror_is_the_machine_s(tmp_path: Path) -> None:
    with pytest.raises(SetupProblem, match="SEATRIAL_DEBIAN_MIRROR"):
        system_mirror(tmp_path)
    (tmp_path / "sources.list").write_text("# deb http://no.example/debian bookworm main\n")
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "tool.list").write_text("deb https://tools.example/apt cloud main\n")
    (tmp_path / "sources.list.d" / "debian.sources").write_text(
        "Types: deb\n# note\nURIs: http://mirror.example/debian/\nSuites: bookworm bookworm-updates\nComponents: main\n"
    )
    assert system_mirror(tmp_path) == "http://mirror.example/debian"
    (tmp_path / "sources.list").write_text("deb [arch=amd64] http://first.example/debian trixie main contrib\n")
    assert system_mirror(tmp_path) == "http://first.example/debian"
    assert security_mirror("http://first.example/debian") == "http://first.example/debian-security"


def test_silence_is_forgotten_after_some_minutes(tmp_path: Path) -> None:
    now = [1000.0]
    silent = UnreachableRegistries(tmp_path / "silent", clock=lambda: now[0])
    assert not silent.knows("docker.io")
    silent.note("docker.io")
    assert UnreachableRegistries(tmp_path / "silent", clock=lambda: now[0]).knows("docker.io")
    assert not silent.knows("ghcr.io")
    now[0] += VERDICT_SEC + 1
    assert not silent.knows("docker.io")


def test_a_bundle_is_split_into_certificates(tmp_path: Path) -> None:
    one = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    two = one.replace("AAAA", "BBBB")
    bundle = tmp_path / "ca.pem"
    bundle.write_text(f"# first\n{one}{two}{one}")
    trust = Trust.read(bundle)
    assert trust is not None
    assert list(trust.files.values()) == [one, two]
    trust.add_to(tmp_path / "root")
    assert (tmp_path / "root/etc/ssl/certs/ca-certificates.crt").read_text() == one + two
    bundle.write_text("nothing")
    with pytest.raises(SetupProblem):
        Trust.read(bundle)
    assert Trust.read(None) is None
