"""The import contracts of pyproject.toml leave no package out, a new one included."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXEMPT = {
    "only wiring knows adapters": {"adapters", "testing", "wiring"},
    "entry points reach sandboxes and Harbor through wiring": {
        *("adapters", "agents", "gateway", "rollouts", "sandboxes", "testing", "wiring")
    },
    "only the runner and wiring know the gate": {"gateway", "wiring"},
    "nothing that runs for users imports testing": {"testing"},
}


def packages() -> set[str]:
    """Modules and packages directly below ``seatrial``."""
    here = ROOT / "src" / "seatrial"
    folders = {path.parent.name for path in here.glob("*/__init__.py")}
    return folders | {path.stem for path in here.glob("*.py") if not path.stem.startswith("__")}


def contract(name: str) -> dict[str, Any]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (found,) = (each for each in settings["contracts"] if each["name"] == name)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", EXEMPT)
def test_a_rule_holds_for_every_package_that_it_does_not_exempt(name: str) -> None:
    covered = {module.removeprefix("seatrial.") for module in contract(name)["source_modules"]}
    assert covered == packages() - EXEMPT[name]
