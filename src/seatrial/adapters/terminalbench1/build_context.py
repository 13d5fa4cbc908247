"""The files that a Terminal-Bench 1 image is built from.

There the build context is the task's own folder, so ``COPY . /app`` puts the tests and the solution where the agent
finds them. Here they stay out, and so do the files that only describe the task, unless a Dockerfile asks for one of
them by its name (real tasks do: ``COPY tests/model.py ./``); then exactly what it names is there.
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
    """Copies the build context below ``into``; files, executable bits and links, nothing else."""
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
    """What the COPY and ADD lines name, relative to the context. ``.`` and ``*`` name nothing in particular."""
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
    """One file or link, with its executable bit and without its dates."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    shutil.copyfile(source, target)
    target.chmod(0o755 if source.stat().st_mode & 0o100 else 0o644)
