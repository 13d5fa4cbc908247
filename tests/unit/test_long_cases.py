"""The table of cases that ``make test`` leaves out names nothing that is gone."""

from __future__ import annotations

import re

import pytest

from tests.command_line import ROOT
from tests.long_cases import AGAIN, AGAIN_IN


@pytest.mark.parametrize("case", AGAIN)
def test_each_case_is_there(case: str) -> None:
    file, _, test = case.partition("::")
    name = test.partition("[")[0]
    assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE)


@pytest.mark.parametrize("file", AGAIN_IN)
def test_each_file_is_there(file: str) -> None:
    assert (ROOT / file).is_file()
