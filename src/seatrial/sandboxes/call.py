"""A command that is requested of a sandbox, and the one kind of it that needs no process."""

from __future__ import annotations

import re
import shlex
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

_EXPANDED = re.compile(r"[$`*?\[\]{}~;&|<>()!\\]")
"""Characters that a shell would interpret."""


@dataclass(frozen=True, slots=True)
class Call:
    """A requested command."""

    command: str
    env: Mapping[str, str]
    cwd: str | None
    user: str | int | None
    """``None`` for the sandbox's default."""
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Identifies its processes if it has to be ended."""


def script_to_allow(command: str) -> str | None:
    """The one path of a plain ``chmod +x PATH``, which Harbor runs before each script; ``None`` for anything else."""
    try:
        words = shlex.split(command) if command.startswith("chmod +x ") else []
    except ValueError:
        return None
    return words[2] if len(words) == 3 and words[2].startswith("/") and not _EXPANDED.search(words[2]) else None
