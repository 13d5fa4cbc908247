"""Which container runtime is taken, and what the operator hears about one that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import SetupProblem
from seatrial.sandboxes.oci.runtime import Runtime


def _program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_runtime_can_be_named_by_its_path(tmp_path: Path) -> None:
    found = Runtime.found(_program(tmp_path / "runc", "echo runc version 9"))
    assert (found.path, found.version, found.is_crun) == (str(tmp_path / "runc"), "runc version 9", False)


def test_gvisor_is_taken_when_it_is_named(tmp_path: Path) -> None:
    found = Runtime.found(_program(tmp_path / "runsc", "echo runsc version 9; echo spec: 1.2.0"))
    assert (found.path, found.version) == (str(tmp_path / "runsc"), "runsc version 9")
    assert found.is_gvisor and not found.is_crun
    assert not Runtime.found(_program(tmp_path / "runc", "echo runc version 9")).is_gvisor


@pytest.mark.parametrize("version", ["0.0~20221219.0", "release-20240101.0"])
def test_an_old_gvisor_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(SetupProblem, match="too old"):
        Runtime.found(_program(tmp_path / "runsc", f"echo runsc version {version}"))


def test_missing_gvisor_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(SetupProblem, match="does not work on this machine") as refusal:
        Runtime.found(str(tmp_path / "runsc"))
    assert "install-gvisor.sh" in (refusal.value.fix or "")


@pytest.mark.parametrize("name", ["kata-runtime", "/bin/true", "../runc2"])
def test_an_unknown_runtime_is_refused(name: str) -> None:
    with pytest.raises(SetupProblem, match="not one that this sandbox knows"):
        Runtime.found(name)


def test_a_runtime_that_does_not_work_is_not_replaced_in_silence(tmp_path: Path) -> None:
    with pytest.raises(SetupProblem, match="does not work on this machine"):
        Runtime.found(_program(tmp_path / "crun", "exit 1"))
