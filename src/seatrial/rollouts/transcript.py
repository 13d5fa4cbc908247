"""Formats command output for a model: limited in length, with the end kept and a note about what is missing."""

from __future__ import annotations

import re
import secrets
import shlex

from seatrial.domain.frozen import Frozen

LONGEST_ANSWER = 20_000
"""Default maximum of characters per call."""
_LEAST = 400
"""Minimum of characters for each command of a call, however many there are."""


class Shell(Frozen):
    """The state that persists between commands, besides files: the working directory."""

    cwd: str | None = None

    def wrap(self, command: str) -> tuple[str, re.Pattern[str]]:
        """A script that runs the command in the last working directory with both streams merged, and a marker for
        the new working directory in its output."""
        mark = secrets.token_hex(8)
        lines = [f'trap \'printf "\\n%s%s%s\\n" {mark} "$PWD" {mark}\' EXIT', "exec 2>&1"]
        if self.cwd is not None:
            lines.append(f"cd -- {shlex.quote(self.cwd)} 2>/dev/null || :")
        return "\n".join([*lines, command]), re.compile(rf"\n{mark}(.*?){mark}\n", re.DOTALL)


def read_answer(text: str, end: re.Pattern[str]) -> tuple[str, str | None]:
    """The output without the marker, and the directory; ``None`` if the command did not reach the marker."""
    found = end.search(text)
    return (text[: found.start()] + text[found.end() :], found[1]) if found else (text, None)


def tail(text: str, limit: int) -> str:
    """The last ``limit`` characters, with a note about how many were removed."""
    if len(text) <= limit:
        return text
    return f"[the first {len(text) - limit} characters of this output are left out]\n{text[len(text) - limit :]}"


def share(limit: int, commands: int) -> int:
    return max(limit // max(commands, 1), _LEAST)


def entry(command: str, output: str, status: int | str, limit: int) -> str:
    """One command as a terminal would show it."""
    told = tail(output.strip("\n"), limit)
    ending = f"[exit status {status}]" if isinstance(status, int) else f"[{status}]"
    lines = [f"$ {tail(command, limit)}"]
    if told:
        lines.append(told)
    if status != 0:
        lines.append(ending)
    elif not told:
        lines.append("[no output]")
    return "\n".join(lines)
