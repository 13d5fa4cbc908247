"""Every setting that a deployment file names is one that Seatrial reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seatrial.settings import Settings
from tests.command_line import ROOT

FILES = [
    path
    for pattern in ("compose.yaml", "Dockerfile", ".env.example", "deploy/**/*")
    for path in sorted(ROOT.glob(pattern))
    if path.is_file()
]


def known() -> set[str]:
    aliases = {
        choice
        for field in Settings.model_fields.values()
        if field.validation_alias is not None
        for choice in getattr(field.validation_alias, "choices", ())
    }
    return {f"SEATRIAL_{name.upper()}" for name in Settings.model_fields} | aliases


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_settings_exist(path: Path) -> None:
    named = set(re.findall(r"\bSEATRIAL_[A-Z0-9_]+", path.read_text(errors="replace")))
    assert named - known() == set()


def test_a_wrong_name_would_be_found() -> None:
    assert "SEATRIAL_DATABASE_URL" in known() and "DATABASE_URL" in known()
    assert "SEATRIAL_DATABASE" not in known()
