"""Programs are read without running them, and a broken or hostile file is no program."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.agents.kits.elf import read_program, set_loader
from seatrial.agents.kits.own_loader import KIT_DIR, LOADER, _own_paths, adopt
from seatrial.errors import SetupProblem
from tests.properties import trying


def test_a_program_tells_its_loader_and_libraries() -> None:
    program = read_program(Path("/bin/bash").resolve())
    assert program is not None
    assert "ld-linux" in program.loader
    assert any(name.startswith("libc.so") for name in program.needed)


def test_a_library_has_no_loader_and_a_script_is_no_program(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert read_program(script) is None
    assert read_program(tmp_path / "missing") is None


@trying(60)
@given(st.data())
def test_a_damaged_program_does_no_harm(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = bytearray(Path("/bin/sh").resolve().read_bytes()[:8192])
    for _ in range(data.draw(st.integers(1, 12))):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    broken = tmp_path_factory.mktemp("elf") / "broken"
    broken.write_bytes(bytes(content[: data.draw(st.integers(4, len(content)))]))
    read_program(broken)


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    copy = tmp_path / "bash"
    shutil.copyfile("/bin/bash", copy)
    program = read_program(copy)
    assert program is not None
    with pytest.raises(ValueError, match="no room"):
        set_loader(copy, program, "/" + "x" * 60)
    assert read_program(copy) == program


def test_a_tree_gets_a_loader_that_finds_its_own_libraries(tmp_path: Path) -> None:
    """Run with the tree at its place: only the kit's files are there, and no library of this machine."""
    (tmp_path / "bin").mkdir()
    shutil.copyfile("/bin/bash", tmp_path / "bin" / "bash")
    (tmp_path / "bin" / "bash").chmod(0o755)
    adopt(tmp_path)
    program = read_program(tmp_path / "bin" / "bash")
    assert program is not None and program.loader == str(LOADER)
    assert (tmp_path / "lib" / "libc.so.6").is_file()
    place = tmp_path.parent / f"{tmp_path.name}-root" / str(KIT_DIR).lstrip("/")
    place.parent.mkdir(parents=True)
    shutil.copytree(tmp_path, place)
    root = place.parents[2]
    ran = subprocess.run(
        ["chroot", str(root), f"{KIT_DIR}/bin/bash", "-c", "echo $((20 + 1))"], capture_output=True, text=True
    )
    assert ran.stdout == "21\n", ran.stderr


def test_a_loader_of_another_form_is_refused() -> None:
    with pytest.raises(SetupProblem, match="unusual places"):
        _own_paths(b"\0/lib64/\0/usr/lib64/\0/etc/ld.so.cache\0")


def test_a_program_of_another_size_class_is_no_program(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(b"\x7fELF\x01\x01" + struct.pack("<58x"))
    assert read_program(small) is None
