"""The table of known differences names tests that exist, each once, and says why."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.contracts.sandbox.differences import DIFFERENCES
from tests.contracts.sandbox.gvisor_part import GVISOR, PART
from tests.contracts.sandbox.kinds import KINDS


def _tests() -> set[str]:
    return {
        node.name
        for path in Path(__file__).parent.glob("test_*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.AsyncFunctionDef)
    }


def test_table_is_about_real_tests() -> None:
    assert {entry.promise for entry in DIFFERENCES} <= _tests()


def test_each_difference_is_listed_once_with_its_reason() -> None:
    keys = [(entry.sandbox, entry.promise) for entry in DIFFERENCES]
    assert len(keys) == len(set(keys))
    assert all(entry.why.endswith(".") for entry in DIFFERENCES)


def test_our_own_sandboxes_have_no_differences_but_those_of_gvisor() -> None:
    assert {entry.sandbox for entry in DIFFERENCES} == {
        name for name, kind in KINDS.items() if not kind.ours or name == GVISOR
    }


def test_the_part_that_runs_on_gvisor_is_of_real_tests() -> None:
    assert _tests() >= PART
