"""Bundles: made once and whole, and never at the cost of the files they were made from."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from seatrial.sandboxes.terminal.bundle import copy_libraries, make_once, strip_symbols, wrapper


def test_a_bundle_is_made_once_and_appears_whole(tmp_path: Path) -> None:
    made: list[Path] = []

    def build(directory: Path) -> None:
        made.append(directory)
        directory.mkdir()
        (directory / "program").write_text("x")
        assert not (tmp_path / "bundles" / "one").exists()

    first = make_once(tmp_path / "bundles" / "one", build)
    second = make_once(tmp_path / "bundles" / "one", build)
    assert first == second
    assert (first / "program").read_text() == "x"
    assert len(made) == 1


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def build(directory: Path) -> None:
        directory.mkdir()
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        make_once(tmp_path / "bundles" / "one", build)
    assert [path.name for path in (tmp_path / "bundles").iterdir()] == [".lock"]


def test_files_shared_with_a_cache_are_neither_stripped_nor_opened(tmp_path: Path) -> None:
    shell = Path(shutil.which("bash") or "").resolve()
    cached = tmp_path / "cached"
    shutil.copy2(shell, cached)
    with cached.open("ab") as file:
        file.write(b"something that strip would remove")
    cached.chmod(0o700)
    before = cached.read_bytes()

    def build(directory: Path) -> None:
        directory.mkdir()
        os.link(cached, directory / "shared")
        shutil.copy2(cached, directory / "own")
        strip_symbols(directory.iterdir())

    bundle = make_once(tmp_path / "bundle", build)
    assert cached.read_bytes() == before
    assert cached.stat().st_mode & 0o777 == 0o700
    assert (bundle / "own").stat().st_mode & 0o777 == 0o755
    assert (bundle / "own").stat().st_size < len(before) or shutil.which("strip") is None


def test_a_program_runs_by_its_own_loader(tmp_path: Path) -> None:
    shell = Path(shutil.which("bash") or "").resolve()
    (tmp_path / "lib").mkdir()
    copy_libraries([shell], tmp_path / "lib")
    shutil.copy2(shell, tmp_path / "shell")
    script = tmp_path / "start"
    script.write_text(wrapper(PurePosixPath(tmp_path), "shell", argv0="bash"))
    done = subprocess.run(["sh", str(script), "-c", "echo $0 runs"], capture_output=True, text=True, check=True)
    assert done.stdout == "bash runs\n"
