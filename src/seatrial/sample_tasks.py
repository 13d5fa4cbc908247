"""Where the sample tasks are: in the installed package, or in the checkout that this runs from."""

from __future__ import annotations

from pathlib import Path

from seatrial.errors import SetupProblem

_PACKAGE = Path(__file__).parent


def samples_folder() -> Path:
    for folder in (_PACKAGE / "samples", _PACKAGE.parents[1] / "samples"):
        if folder.is_dir():
            return folder
    raise SetupProblem("This installation came without its sample tasks.", fix="Install it anew from its wheel.")
