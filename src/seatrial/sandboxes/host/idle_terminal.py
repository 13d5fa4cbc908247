"""Tells an agent's idle terminal from processes that matter.

An agent that types into tmux leaves it running: the server, a login shell, the recorder, and a shell that waits for
keys. Nothing of it is part of the work. Every other process may be, such as a service that grading asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_SHELLS = frozenset({"bash", "sh", "dash", "ash", "zsh", "fish"})
_RECORDERS = frozenset({"asciinema", "ld.so"})
"""The recorder of the image, or that of ``sandboxes.terminal``, which is started by its own loader."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A part of ``/proc/PID/stat``."""

    name: str
    parent: int
    is_in_front: bool
    """It has a terminal, and what is typed there comes to it."""


def look(processes: Iterable[int]) -> dict[int, Seen]:
    """Those that are there."""
    found = {process: _seen(process) for process in processes}
    return {process: seen for process, seen in found.items() if seen is not None}


def lasting(processes: Mapping[int, Seen]) -> set[int]:
    """All but idle terminals."""
    below: dict[int, list[int]] = {}
    for process, seen in processes.items():
        below.setdefault(seen.parent, []).append(process)

    def waits(process: int, depth: int = 0) -> bool:
        seen, children = processes[process], below.get(process, [])
        if depth > len(processes):
            return False
        if children:
            return seen.name in _SHELLS | _RECORDERS and all(waits(child, depth + 1) for child in children)
        return seen.name in _SHELLS and seen.is_in_front

    def is_log(process: int) -> bool:
        """``tmux pipe-pane`` writes a log with ``sh -c 'cat > …'``."""
        children = below.get(process, [])
        return processes[process].name == "sh" and [processes[child].name for child in children] in (["cat"], [])

    idle: set[int] = set()
    for server, seen in processes.items():
        if not seen.name.startswith("tmux"):
            continue
        panes = [pane for pane in below.get(server, []) if waits(pane) or is_log(pane)]
        idle |= {server, *(process for pane in panes for process in _tree(pane, below))}
    return set(processes) - idle


def _tree(top: int, below: Mapping[int, list[int]]) -> set[int]:
    found, more = set[int](), [top]
    while more:
        process = more.pop()
        if process not in found:
            found.add(process)
            more += below.get(process, [])
    return found


def _seen(process: int) -> Seen | None:
    try:
        text = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return None
    head, _, rest = text.rpartition(")")
    state, parent, group, _, terminal, front, *_ = rest.split()
    if state in ("Z", "X"):
        return None
    name = "".join(char if char.isprintable() else "?" for char in head.partition("(")[2])
    return Seen(name, int(parent), terminal != "0" and front == group)
