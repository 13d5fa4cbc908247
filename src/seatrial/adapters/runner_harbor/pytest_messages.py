"""Whole error messages of failed tests from pytest's output, whose summary cuts them to the width of a screen.

Total for any text: it comes from a sandbox. A message is only shown; it never decides anything. Every pattern takes
linear time, and messages, lines and tests are limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_LONGEST_MESSAGE = 4000
_LONGEST_LINE = 8000
_MOST_TESTS = 5000

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_BLAME = re.compile(r"E(?: |$)")


def error_lines(trace: str) -> str:
    """The lines that pytest marks with E, without the mark and their common indentation; empty if there are none."""
    return _message(_plain(line)[1:] for line in trace.splitlines() if _BLAME.match(_plain(line)))


def messages_in(output: str) -> dict[str, str]:
    """From the sections FAILURES and ERRORS, by the name in the heading of each test: ``Class.test``.

    A name that occurs twice, such as that of a test in two files, is left out."""
    found: dict[str, list[str]] = {}
    twice: set[str] = set()
    for name, lines in _failures(output):
        if name in found:
            twice.add(name)
        elif len(found) < _MOST_TESTS:
            found[name] = lines
    return {name: message for name, lines in found.items() if name not in twice and (message := _message(lines))}


def heading_of(test: str) -> str:
    """How pytest names a test in its heading: without the file, and with dots."""
    parts = test.split("::")
    return ".".join(parts[1:] if len(parts) > 1 and parts[0].endswith(".py") else parts)


def _failures(output: str) -> Iterator[tuple[str, list[str]]]:
    """Each failed test with its E lines. What the test printed is skipped."""
    inside = printed = False
    lines: list[str] = []
    for whole in output.splitlines():
        line = _plain(whole)
        if (title := _ruled(line, "=")) is not None:
            inside, lines = title in ("FAILURES", "ERRORS"), []
        elif not inside:
            continue
        elif (title := _ruled(line, "_")) is not None:
            lines, printed = [], False
            yield _test_named(title), lines
        elif _ruled(line, "-") is not None:
            printed = True
        elif not printed and _BLAME.match(line):
            lines.append(line[1:])


def _ruled(line: str, rule: str) -> str | None:
    """The title of a line such as ``=== title ===``."""
    inner = line.strip(rule)
    framed = line.startswith(rule) and line.endswith(rule) and inner.startswith(" ") and inner.endswith(" ")
    return inner.strip() or None if framed else None


def _test_named(title: str) -> str:
    """The title of an error is ``ERROR at setup of test``."""
    start, _, name = title.partition(" of ")
    return name if name and start.startswith("ERROR at ") else title


def _plain(line: str) -> str:
    """As a screen would show it: without colours, and of text that was written over only the last."""
    line = _COLOUR.sub("", line[:_LONGEST_LINE])
    return line.rstrip("\r").rpartition("\r")[2]


def _message(lines: Iterable[str]) -> str:
    kept, room = [], _LONGEST_MESSAGE
    for line in lines:
        if room < 0:
            break
        kept.append(line)
        room -= len(line) + 1
    said = [len(line) - len(line.lstrip(" ")) for line in kept if line.strip()]
    indent = min(said, default=0)
    return "\n".join(line[indent:].rstrip() for line in kept).strip()[:_LONGEST_MESSAGE]
