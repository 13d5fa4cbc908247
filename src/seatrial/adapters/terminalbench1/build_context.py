"""The files that a Terminal-Bench 1 image is built from.

In Terminal-Bench 1 the build context is the task's folder, so ``COPY . /app`` gives the agent the tests and the
solution. Here they are excluded, and so are the files that only describe the task, unless a Dockerfile names one of
them (real tasks do: ``COPY tests/model.py ./``). Then exactly the named files are included.
"""

from __future__ import annotations

import json
import re
import shutil
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from seatrial.task_content.tree import walk

_WITHHELD = ("tests", "run-tests.sh", "solution.sh", "solution.yaml", "task.yaml", "docker-compose.yaml")
_COPY = re.compile(r"^\s*(?:COPY|ADD)\s+(.*)$", re.IGNORECASE)
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")


def copy_context(root: Path, context: str, dockerfiles: list[Path], into: Path) -> None:
    """Copies files, executable bits and links of the build context below ``into``."""
    asked_for = [pattern for dockerfile in dockerfiles for pattern in named_sources(dockerfile)]
    source = root / context
    for entry in walk(source):
        if context == "." and is_withheld(entry.path, asked_for):
            continue
        copy_entry(entry.source, into / entry.path)


def is_withheld(path: str, asked_for: list[str]) -> bool:
    if PurePosixPath(path).parts[0] not in _WITHHELD:
        return False
    ancestors = [path, *(str(parent) for parent in PurePosixPath(path).parents)]
    return not any(fnmatchcase(ancestor, pattern) for pattern in asked_for for ancestor in ancestors)


def named_sources(dockerfile: Path) -> list[str]:
    """The sources of COPY and ADD lines, relative to the context, without ``.`` and ``*``."""
    if not dockerfile.is_file():
        return []
    text = _CONTINUED.sub(" ", dockerfile.read_text("utf-8", "replace"))
    sources: list[str] = []
    for line in text.splitlines():
        if (match := _COPY.match(line)) and "--from" not in line:
            sources += _sources(match[1])
    named = (str(PurePosixPath(source.lstrip("/"))) for source in sources)
    return [name for name in named if name.strip("./*?")]


def _sources(arguments: str) -> list[str]:
    text = re.sub(r"^(--\S+\s+)*", "", arguments.strip())
    try:
        words = [str(word) for word in json.loads(text)] if text.startswith("[") else text.split()
    except ValueError:
        words = text.split()
    return words[:-1]


def copy_entry(source: Path, target: Path) -> None:
    """Copies one file or link, with its executable bit and without its dates."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    shutil.copyfile(source, target)
    target.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)
