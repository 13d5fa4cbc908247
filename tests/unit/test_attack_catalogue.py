"""The catalogue of attacks is true, and so are the paths that the threat model names."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ATTACKS = ROOT / "tests" / "attacks"
POSITIONS = ("task_author", "agent", "tenant", "web_page", "result_reader")
_ROW = re.compile(r"\| `(tests/\S+\.py)` \| [^|]+ \| ((?:`\w+`(?:, )?)+) \|")
_SANDBOXES = {"oci", "docker", "podman"}
LEAST, LEAST_OF_EACH = 120, 12


@cache
def catalogue() -> dict[str, tuple[str, frozenset[str]]]:
    """By file: its position, and the tests of it that are twins or controls."""
    found: dict[str, tuple[str, frozenset[str]]] = {}
    position = ""
    for line in (ATTACKS / "README.md").read_text().splitlines():
        if line.startswith("## "):
            position = line[3:].partition(":")[0]
        elif row := _ROW.fullmatch(line):
            assert row[1] not in found, f"{row[1]} is there twice"
            found[row[1]] = position, frozenset(re.findall(r"`(\w+)`", row[2]))
    return found


@cache
def cases() -> frozenset[tuple[str, str, str]]:
    """File, test and case of everything that pytest collects. The same case in several sandboxes is one."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CI"))}
    done = subprocess.run([*command, *catalogue()], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    lines = [line for line in done.stdout.splitlines() if "::" in line]
    return frozenset(_case(line) for line in lines)


def _case(line: str) -> tuple[str, str, str]:
    file, _, rest = line.partition("::")
    test, _, case = rest.partition("[")
    kinds = [part for part in case.removesuffix("]").split("-") if part not in _SANDBOXES]
    return file, test.rpartition("::")[2], "-".join(kinds)


def test_every_file_of_attacks_is_in_its_place_of_the_catalogue() -> None:
    there = {str(path.relative_to(ROOT)): path.parent.name for path in ATTACKS.rglob("test_*.py")}
    listed = {file: position for file, (position, _) in catalogue().items() if file.startswith("tests/attacks/")}
    assert listed == there
    assert {position for position, _ in catalogue().values()} == set(POSITIONS)


@pytest.mark.parametrize("file", catalogue())
def test_every_twin_is_a_test_and_has_an_attack_beside_it(file: str) -> None:
    functions = {
        node.name
        for node in ast.walk(ast.parse((ROOT / file).read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }
    _, twins = catalogue()[file]
    assert twins and twins < functions, twins - functions


def test_there_are_attacks_enough_in_each_position() -> None:
    """Counted by tests, each a rule of its own; cases of one test are many more."""
    counted: Counter[str] = Counter()
    for file, test in {(file, test) for file, test, _ in cases()}:
        position, twins = catalogue()[file]
        counted[position] += test not in twins
    assert counted.total() >= LEAST, counted
    assert all(counted[position] >= LEAST_OF_EACH for position in POSITIONS), counted


def test_every_test_that_the_threat_model_names_is_there() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text()
    named = set(re.findall(r"`(tests/[\w./*-]+)`", text))
    assert len(named) > 30, "the paths were not found"
    assert [path for path in sorted(named) if not any(ROOT.glob(path))] == []


def test_every_attack_of_a_position_is_shown_in_the_threat_model() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text()
    assert [position for position in POSITIONS if f"`tests/attacks/{position}" not in text] == []


def test_commands_print_through_the_one_function_that_is_harmless() -> None:
    """JSON is printed as it is: what it escapes is harmless already."""
    own = {"view/say.py", "backend/session.py", "commands/export.py"}
    folder = ROOT / "src" / "seatrial" / "cli"
    found = {str(path.relative_to(folder)) for path in folder.rglob("*.py") if "typer.echo(" in path.read_text()}
    assert found <= own, found - own
