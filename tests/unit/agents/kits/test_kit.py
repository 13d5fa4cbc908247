"""The digest of a kit covers everything that a sandbox sees of it; modes are settled without following links."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.agents.kits.kit import digest_of, settle_modes


def tree(path: Path) -> Path:
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "agent").write_text("run\n")
    (path / "bin" / "agent").chmod(0o755)
    (path / "data").write_text("text\n")
    (path / "link").symlink_to("data")
    return path


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda path: (path / "data").write_text("texts\n"),
    "a program that is one no more": lambda path: (path / "bin" / "agent").chmod(0o644),
    "a link elsewhere": lambda path: ((path / "link").unlink(), (path / "link").symlink_to("bin")),
    "a file for a link": lambda path: ((path / "link").unlink(), (path / "link").write_text("text\n")),
    "a new name": lambda path: (path / "data").rename(path / "date"),
    "an empty directory": lambda path: (path / "empty").mkdir(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_seen(tmp_path: Path, change: str) -> None:
    before = digest_of(tree(tmp_path / "kit"))
    CHANGES[change](tmp_path / "kit")
    assert digest_of(tmp_path / "kit") != before


def test_the_same_content_has_the_same_digest(tmp_path: Path) -> None:
    assert digest_of(tree(tmp_path / "one")) == digest_of(tree(tmp_path / "other"))


def test_modes_are_settled_and_no_link_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o700)
    kit = tree(tmp_path / "kit")
    (kit / "away").symlink_to(outside)
    (kit / "bin" / "agent").chmod(0o6755)
    (kit / "data").chmod(0o600)
    settle_modes(kit)
    assert outside.stat().st_mode & 0o777 == 0o700
    assert (kit / "bin" / "agent").stat().st_mode & 0o7777 == 0o755
    assert (kit / "data").stat().st_mode & 0o7777 == 0o644
