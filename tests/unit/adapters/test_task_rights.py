"""What a task's files ask of the machine: an architecture, elevated privileges."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.adapters.task_rights import Rights, rights_of

PLAIN = "services: {main: {build: .}}"


def found(root: Path, compose: str | None, dockerfile: str | None) -> Rights:
    for name, text in (("compose.yaml", compose), ("Dockerfile", dockerfile)):
        if text is not None:
            (root / name).write_text(text)
    return rights_of(root, "compose.yaml", "Dockerfile")


@pytest.mark.parametrize(
    ("compose", "dockerfile", "rights"),
    [
        (None, None, Rights()),
        (PLAIN, "FROM debian:12", Rights()),
        ("services: {main: {privileged: true}}", None, Rights(elevated=True)),
        ("services: {main: {privileged: false}}", None, Rights()),
        ("services: {main: {platform: linux/arm64}}", None, Rights("arm64")),
        (PLAIN, "FROM --platform=linux/arm64 debian:12\nRUN true", Rights("arm64")),
        (PLAIN, "from --platform=linux/amd64 a AS b\nFROM b", Rights("amd64")),
        (PLAIN, "FROM --platform=$BUILDPLATFORM debian", Rights()),
        (PLAIN, "FROM --platform=linux/evil=1 debian", Rights()),
        ("services: [", "FROM x", Rights()),
        ("services: 3", "FROM x", Rights()),
        ("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b]", None, Rights()),
    ],
)
def test_rights(tmp_path: Path, compose: str | None, dockerfile: str | None, rights: Rights) -> None:
    assert found(tmp_path, compose, dockerfile) == rights


def test_a_link_out_of_the_task_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("services: {main: {privileged: true}}")
    task = tmp_path / "task"
    task.mkdir()
    (task / "compose.yaml").symlink_to(tmp_path / "secret")
    assert rights_of(task, "compose.yaml", "Dockerfile") == Rights()
