"""Help texts are for people: names of things instead of Python types, no sentence cut, nothing past 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from seatrial.cli.main import app


def commands(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, (*path, name))


EVERY = list(commands(typer.main.get_command(app)))
PYTHON = re.compile(r"<\w|\blist\[|\bint\b|\bstr\b|\bfloat\b|range>|\{[A-Z]")


def told(*path: str) -> str:
    return CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80"}).output


@pytest.mark.parametrize("path", EVERY, ids=lambda path: " ".join(path) or "seatrial")
def test_help_is_plain(path: tuple[str, ...]) -> None:
    text = told(*path)
    assert text.startswith("Usage: ") and not PYTHON.search(text), text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "..." not in text
    for option in re.findall(r"^ {2,6}-.*", text, re.MULTILINE):
        assert re.match(r"  (-\w,|   ) --[\w-]+( [A-Z][A-Z=/]*| N)?(  |$)", option), option


def test_arguments_and_options_have_names_that_people_use() -> None:
    assert "Usage: seatrial run [OPTIONS] [PATH…]" in told("run")
    assert "Usage: seatrial task add [OPTIONS] PATH…" in told("task", "add")
    assert "Usage: seatrial trial logs [OPTIONS] TRIAL" in told("trial", "logs")
    text = told("run")
    assert text.index("\nTasks:\n") < text.index("\nAgents & models:\n") < text.index("\nOptions:\n")
    assert "-k, --attempts N" in text and "also --n-attempts" in " ".join(text.split())


def test_every_command_has_its_place_in_the_index() -> None:
    text = told()
    assert "\nMore:\n" not in text
    assert {path[0] for path in EVERY if path} <= set(re.findall(r"^  (\w+)", text, re.MULTILINE))
