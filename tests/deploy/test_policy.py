"""The policy scanner of ``make policy`` finds nothing in ``deploy/``, and finds what is wrong."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.command_line import ROOT

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def scan(*folder: Path) -> subprocess.CompletedProcess[str]:
    command = ["sh", ROOT / "scripts" / "policy.sh", *folder]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_finds_nothing() -> None:
    done = scan()
    assert done.returncode == 0, done.stdout


WRONG = (
    ("terraform/stores.tf", "storage_encrypted               = true", "storage_encrypted = false", "CKV_AWS_16"),
    ("terraform/workers.tf", '"required"', '"optional"', "CKV_AWS_79"),
    ("kubernetes/api.yaml", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "CKV_K8S_22"),
)


def test_it_finds_what_is_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "deploy"
    shutil.copytree(ROOT / "deploy", folder)
    for file, before, after, _ in WRONG:
        text = (folder / file).read_text()
        assert before in text
        (folder / file).write_text(text.replace(before, after))
    done = scan(folder)
    assert done.returncode == 1
    assert set(re.findall(r"Check: (\w+)", done.stdout)) == {rule for *_, rule in WRONG}
