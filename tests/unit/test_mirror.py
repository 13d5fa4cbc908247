"""``tests/unit`` mirrors ``src/seatrial``: a reader finds the tests of a module in the folder of the same name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.command_line import ROOT

HERE, SOURCE = ROOT / "tests" / "unit", ROOT / "src" / "seatrial"
ELSEWHERE = {"benchmarks"}
"""Folders whose code is not in ``src``."""
THROUGH_OTHERS = {"engine/trials/test_running.py"}
"""Reaches its module through the worker."""
TESTS = sorted(str(file.relative_to(HERE)) for file in HERE.glob("*/**/test_*.py"))


@pytest.mark.parametrize("name", [name for name in TESTS if name.split("/")[0] not in ELSEWHERE])
def test_a_test_lies_in_the_folder_of_a_module_that_it_uses(name: str) -> None:
    folder = Path(name).parent
    assert (SOURCE / folder).is_dir(), f"src/seatrial/{folder} is gone"
    package = ".".join(("seatrial", *folder.parts))
    text = (HERE / name).read_text()
    modules = {file.stem for file in (SOURCE / folder).glob("*.py")} - {"__init__"}
    used = set(re.findall(rf"\b{re.escape(package)}\.(\w+)", text)) & modules
    above, _, last = package.rpartition(".")
    whole = re.search(rf"from {re.escape(package)} import|from {re.escape(above)} import .*\b{last}\b", text)
    assert used or whole or name in THROUGH_OTHERS, f"{name} uses nothing of {package}"
