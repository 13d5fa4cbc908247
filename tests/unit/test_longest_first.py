"""The order of a test run: the longest files first, and nothing else changed."""

from __future__ import annotations

from dataclasses import dataclass

from tests.command_line import ROOT
from tests.longest_first import LONGEST, order_longest_first


@dataclass(frozen=True)
class Item:
    nodeid: str


def test_the_longest_files_come_first_and_the_others_stay_in_order() -> None:
    items = [Item(f"tests/a.py::{n}") for n in "xy"] + [Item(f"{name}::test") for name in reversed(LONGEST)]
    order_longest_first(items)  # type: ignore[arg-type]
    assert [item.nodeid for item in items] == [*(f"{name}::test" for name in LONGEST), "tests/a.py::x", "tests/a.py::y"]


def test_every_file_named_is_there() -> None:
    assert [name for name in LONGEST if not (ROOT / name).is_file()] == []
