"""Problems of tasks of any format: unreadable files, links out of the task, scripts that cannot run.

The task readers collect all problems in one ``Problems``, so that a user sees them at once, with file, line and fix.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from seatrial.adapters.positions import KeyPath, Positions, line_of
from seatrial.domain.task import Severity, TaskProblem
from seatrial.task_content.tree import Entry, walk

_TEXT_LIMIT = 2 * 1024 * 1024
_YAML_NODES = 100_000
LONGEST_SEC = 1e9
"""Thirty years: the longest time limit of a task."""
_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")
_FIXES = {
    "int": "Give a whole number without quotes.",
    "float": "Give a number without quotes.",
    "string": "Put the value in quotes.",
    "bool": "Write true or false without quotes.",
    "list": "Give a list in square brackets.",
    "dict": "Give a table.",
    "missing": "Add it.",
    "enum": "Use one of the values named.",
    "literal": "Use one of the values named.",
}


class Problems:
    """The problems found so far."""

    def __init__(self) -> None:
        self._found: list[TaskProblem] = []

    def error(self, file: str, message: str, *, line: int | None = None, fix: str = "") -> None:
        self._found.append(TaskProblem(file=file, message=message, line=line, fix=fix))

    def warn(self, file: str, message: str, *, line: int | None = None, fix: str = "") -> None:
        self._found.append(
            TaskProblem(file=file, message=message, line=line, fix=fix, severity=Severity.WARNING),
        )

    @property
    def all(self) -> tuple[TaskProblem, ...]:
        """Errors first, then by file and line."""
        return tuple(
            sorted(self._found, key=lambda found: (found.severity is Severity.WARNING, found.file, found.line or 0))
        )

    @property
    def warnings(self) -> tuple[TaskProblem, ...]:
        return tuple(problem for problem in self.all if problem.severity is Severity.WARNING)

    @property
    def fatal(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self._found)


class FileProblems:
    """Problems of one TOML or YAML file, each shown at the line of its key."""

    def __init__(self, problems: Problems, file: str, positions: Positions) -> None:
        self._problems = problems
        self._file = file
        self._positions = positions

    def error(self, path: KeyPath, message: str, fix: str) -> None:
        self._problems.error(self._file, _with_key(path, message), line=line_of(self._positions, path), fix=fix)

    def warn(self, path: KeyPath, message: str, fix: str) -> None:
        self._problems.warn(self._file, _with_key(path, message), line=line_of(self._positions, path), fix=fix)

    def warn_unknown(self, path: KeyPath, known: Iterable[str], effect: str, fix: str) -> None:
        """An unknown field, with the known name that resembles it most."""
        near = difflib.get_close_matches(str(path[-1]), list(known), n=1)
        self.warn(path, f"unknown field, which {effect}.", fix=f"Did you mean {near[0]!r}?" if near else fix)

    def report_invalid(self, error: ValidationError) -> None:
        """Each finding of the schema as a problem of its own."""
        for finding in error.errors(include_url=False, include_context=False):
            path = tuple(part for part in finding["loc"] if part != "__root__")
            message = re.sub(r"^Value error, ", "", finding["msg"]).rstrip(".")
            fix = next(
                (text for kind, text in _FIXES.items() if finding["type"].startswith(kind)), "Correct the value."
            )
            self.error(path, f"{message}.", fix=fix)


def _with_key(path: KeyPath, message: str) -> str:
    return f"{'.'.join(map(str, path))}: {message}" if path else message


def check_tree(root: Path, problems: Problems) -> list[Entry]:
    """Returns all entries of the task. Reports links out of it, and entries that are not files or folders."""
    entries = list(walk(root))
    inside = root.resolve()
    for entry in entries:
        if any("\ud800" <= character <= "\udfff" for character in entry.path):
            shown = entry.path.encode(errors="surrogateescape").decode(errors="backslashreplace")
            problems.error(shown, "has a name that is not UTF-8.", fix="Rename it.")
        elif entry.is_link:
            target = os.readlink(entry.source)  # noqa: PTH115 - the target as written
            if target.startswith("/") or not _stays(entry.source, inside):
                problems.error(
                    entry.path,
                    f"is a link that leads out of the task or nowhere: {target}.",
                    fix="Put the file itself into the task.",
                )
        elif not entry.is_file:
            problems.error(entry.path, "is neither a file nor a folder.", fix="Remove it.")
    return entries


def _stays(path: Path, inside: Path) -> bool:
    try:
        return path.resolve().is_relative_to(inside)
    except (OSError, RuntimeError):
        return False  # a loop of links


def is_own_file(root: Path, file: str) -> bool:
    """Whether it is a file inside the task, also after following links."""
    path = root / file
    return path.is_file() and path.resolve().is_relative_to(root.resolve())


def read_text(root: Path, file: str, problems: Problems) -> str | None:
    """The file as text. ``None`` if it is missing or outside the task, or with a problem if it is unreadable."""
    path = root / file
    if not is_own_file(root, file):
        return None
    if path.stat().st_size > _TEXT_LIMIT:
        problems.error(file, "is larger than 2 MB.", fix="Keep data out of this file.")
        return None
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as bad:
        line = raw.count(b"\n", 0, bad.start) + 1
        problems.error(file, "is not UTF-8.", line=line, fix="Save the file as UTF-8.")
        return None


def read_yaml(text: str, file: str, problems: Problems) -> Any:
    """The parsed document, or ``None`` and a problem."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is not None and _expanded(root, _YAML_NODES) >= _YAML_NODES:
            problems.error(file, "is too large after its aliases are expanded.", fix="Write it without aliases.")
            return None
        return encodable(yaml.safe_load(text), file, problems)
    except yaml.MarkedYAMLError as bad:
        line = bad.problem_mark.line + 1 if bad.problem_mark else None
        problems.error(file, f"is not valid YAML: {bad.problem or bad}.", line=line, fix="Correct the syntax.")
    except (yaml.YAMLError, RecursionError, ValueError) as bad:
        problems.error(file, f"is not valid YAML: {type(bad).__name__}.", fix="Correct the syntax.")
    return None


def encodable(document: Any, file: str, problems: Problems) -> Any:
    """The document, or ``None`` and a problem. Escapes can encode lone surrogates and NUL, which databases refuse."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set):
            waiting += value
        elif isinstance(value, str) and _NOT_STORABLE.search(value):
            problems.error(file, "has a lone surrogate or a NUL in a text.", fix="Remove the escape.")
            return None
    return document


def _expanded(node: yaml.Node, limit: int) -> int:
    """The number of nodes after expanding every alias, counted up to the limit."""
    count, waiting = 0, [node]
    while waiting and count < limit:
        current = waiting.pop()
        count += 1
        if isinstance(current, yaml.MappingNode):
            waiting.extend(part for pair in current.value for part in pair)
        elif isinstance(current, yaml.SequenceNode):
            waiting.extend(current.value)
    return count


def check_script(root: Path, file: str, problems: Problems) -> None:
    """Warns about Windows line ends: with them the first line names a program that does not exist."""
    if not is_own_file(root, file):
        return
    with (root / file).open("rb") as script:
        head = script.read(_TEXT_LIMIT)
    at = head.find(b"\r\n")
    if at >= 0:
        line = head.count(b"\n", 0, at) + 1
        problems.warn(file, "has Windows line ends.", line=line, fix=f"Run: sed -i 's/\\r$//' {file}")
