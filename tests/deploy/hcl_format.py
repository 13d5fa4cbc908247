"""The layout that ``terraform fmt`` gives: indentation by brackets, equals signs of neighbouring lines in one column.

``python -m tests.deploy.hcl_format FILE…`` writes it. Terraform itself cannot be had where the tests run."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

_ASSIGNMENT = re.compile(r'^(?P<key>[A-Za-z_][\w-]*|"[^"]*")\s*=(?![=>])\s*(?P<value>.*)$')
_HEREDOC = re.compile(r"<<-?\s*(\w+)\s*$")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_COMMENT = re.compile(r"\s(?:#|//).*$")


def formatted(text: str) -> str:
    lines: list[str] = []
    chain: list[tuple[str, str, str]] = []
    opened: list[int] = []
    heredoc = ""
    for raw in text.splitlines():
        line = raw.strip()
        if heredoc:
            lines.append(raw.rstrip())
            heredoc = "" if line == heredoc else heredoc
            continue
        change = _brackets(line)
        indent = "  " * len(_left_open(opened, _closing_first(line)))
        found = _ASSIGNMENT.match(line)
        if found and change == 0 and not line.startswith("#"):
            chain.append((indent, found["key"], found["value"]))
        else:
            lines += _aligned(chain)
            chain = []
            lines.append(f"{indent}{_spaced(found)}" if found else f"{indent}{line}".rstrip())
        opened = [*opened, change] if change > 0 else _left_open(opened, -change)
        started = _HEREDOC.search(line)
        heredoc = started[1] if started else ""
    return "\n".join([*lines, *_aligned(chain)]) + "\n"


def _spaced(found: re.Match[str]) -> str:
    return f"{found['key']} = {found['value']}"


def _aligned(chain: list[tuple[str, str, str]]) -> Iterable[str]:
    width = max((len(key) for _, key, _ in chain), default=0)
    return [f"{indent}{key.ljust(width)} = {value}" for indent, key, value in chain]


def _code(line: str) -> str:
    """The line without its strings and comments."""
    bare = _STRING.sub('""', line)
    return "" if bare.startswith(("#", "//")) else _COMMENT.sub("", bare)


def _brackets(line: str) -> int:
    code = _code(line)
    return sum(code.count(sign) for sign in "{[(") - sum(code.count(sign) for sign in "}])")


def _left_open(opened: list[int], closed: int) -> list[int]:
    """One entry, and one step of indentation, per line that opened brackets, however many they are."""
    left = list(opened)
    while closed > 0 and left:
        if left[-1] > closed:
            left[-1] -= closed
            break
        closed -= left.pop()
    return left


def _closing_first(line: str) -> int:
    """Brackets that the line closes before it opens any: it stands under the line that opened them."""
    closed = 0
    for sign in _code(line):
        if sign not in "}])":
            break
        closed += 1
    return closed


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(formatted(Path(name).read_text()))
