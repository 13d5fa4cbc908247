"""Any tree that an agent could leave: copied and removed, nothing outside of it is read, written or taken away."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.sandboxes.host.in_root import SandboxRoot
from seatrial.sandboxes.host.tree_copy import Budget, TransferLimits, TreeCopy, leads_out
from seatrial.system.removal import remove_tree
from tests.properties import trying

SECRET = "of this machine"
LIMITS = TransferLimits(files=40, bytes=1 << 16, depth=6, path=200)
NAMES = st.one_of(
    st.sampled_from(["a", "b", "...", "-rf", " ", "new\nline", "reward.json"]),
    st.binary(min_size=1, max_size=12).map(lambda name: os.fsdecode(name.replace(b"/", b"_").replace(b"\0", b"_"))),
).filter(lambda name: name not in (".", ".."))
TARGETS = st.one_of(
    st.sampled_from([".", "..", "../..", "a", "a/..", "a/../..", "/", "/etc", "../outside/secret", "../../outside"]),
    st.lists(st.sampled_from(["..", "a", "b", ".", "outside", "secret"]), min_size=1, max_size=6).map("/".join),
    st.lists(st.sampled_from(["..", "a", "b", "etc"]), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts)),
)
ENTRIES = st.tuples(st.lists(NAMES, min_size=1, max_size=8), st.sampled_from(["file", "link", "pipe", "dir"]), TARGETS)


@contextmanager
def _grown(base: Path, entries: list[tuple[list[str], str, str]]) -> Iterator[Path]:
    """A tree beside something secret; what cannot be made is left out."""
    tree, outside = base / "tree", base / "outside"
    shutil.rmtree(base, ignore_errors=True)
    tree.mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_text(SECRET)
    for parts, kind, target in entries:
        path = tree.joinpath(*parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.parent.resolve().is_relative_to(tree):
                continue
            _make(path, kind, target)
        except OSError:
            continue
    yield tree
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == SECRET


def _make(path: Path, kind: str, target: str) -> None:
    if os.path.lexists(path):  # it may be a pipe
        return
    match kind:
        case "file":
            path.write_text("of the sandbox")
        case "link":
            path.symlink_to(target)
        case "pipe":
            os.mkfifo(path)
        case "dir":
            path.mkdir()


def _copied(tree: Path, copy: Path) -> None:
    copy.mkdir()
    origin, goal = (os.open(path, os.O_RDONLY | os.O_DIRECTORY) for path in (tree, copy))
    try:
        TreeCopy("out", Budget(LIMITS)).run(origin, goal)
    finally:
        os.close(origin)
        os.close(goal)


@trying(120)
@given(entries=st.lists(ENTRIES, max_size=12))
def test_copy_brings_only_what_is_in_the_tree(tmp_path: Path, entries: list[tuple[list[str], str, str]]) -> None:
    base = tmp_path / "base"
    with _grown(base, entries) as tree:
        copy = base / "copy"
        _copied(tree, copy)
        for folder, folders, files in os.walk(copy):
            for path in (Path(folder, name) for name in (*folders, *files)):
                if path.is_symlink():
                    assert Path(os.path.normpath(path.parent.resolve() / path.readlink())).is_relative_to(copy)
                elif path.is_file():
                    assert path.read_text() == "of the sandbox"
        shutil.rmtree(copy)


@trying(120)
@given(entries=st.lists(ENTRIES, max_size=12))
def test_removal_takes_the_tree_and_nothing_else(tmp_path: Path, entries: list[tuple[list[str], str, str]]) -> None:
    with _grown(tmp_path / "base", entries) as tree:
        assert remove_tree(tree) == "" and not os.path.lexists(tree)


@trying(150)
@given(entries=st.lists(ENTRIES, max_size=8), parts=st.lists(st.one_of(NAMES, st.just("..")), max_size=8))
def test_no_path_leads_out_of_a_root(
    tmp_path: Path, entries: list[tuple[list[str], str, str]], parts: list[str]
) -> None:
    with _grown(tmp_path / "base", entries) as tree:
        descriptor = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
        inodes = {os.stat(path, follow_symlinks=False).st_ino for path in (tree, *tree.rglob("*"))}
        try:
            with SandboxRoot(descriptor).found("/".join(parts)) as handle:
                assert os.fstat(handle).st_ino in inodes
            with SandboxRoot(descriptor).made_directory("/".join(parts)) as made:
                assert Path(os.readlink(f"/proc/self/fd/{made}")).is_relative_to(tree)
        except (OSError, ValueError):
            pass  # refused, or not there
        finally:
            os.close(descriptor)


@given(target=TARGETS, place=st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4))
def test_kept_links_stay_inside(target: str, place: list[str]) -> None:
    if not leads_out(target, "/".join(place)):
        assert not os.path.normpath("/".join([*place[:-1], target])).startswith(("..", "/"))


@pytest.mark.parametrize("depth", [5, 6])
def test_ordinary_tree_is_copied_whole(tmp_path: Path, depth: int) -> None:
    """The harmless twin, up to the limit."""
    with _grown(tmp_path / "base", [(["d"] * (depth - 1) + ["file"], "file", ""), (["link"], "link", "d")]) as tree:
        copy = tmp_path / "copy"
        _copied(tree, copy)
        assert (copy / "/".join(["d"] * (depth - 1)) / "file").read_text() == "of the sandbox"
        assert (copy / "link").readlink() == Path("d")
