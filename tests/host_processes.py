"""Processes as this machine sees them, those in sandboxes included."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tests.waiting import LIMIT_SEC, until


def processes_with(marker: str) -> list[int]:
    """Those that have the marker in their command line, whose words are separated by NUL."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def waiting_for(file: str, mark: str) -> str:
    """A shell command that waits for a file of its sandbox; ``write_beside`` writes it."""
    return f"bash -c 'until [ -e {file} ]; do sleep 0.1; done' {file} {mark}"


def write_beside(file: str, mark: str, text: str = "", seconds: float = LIMIT_SEC) -> None:
    """Writes the file for the one command that waits for it, once there is one, and returns when it goes on."""
    waiting = f"{file}\0{mark}"

    def written() -> bool:
        # It is two processes where its next sleep has not begun yet, and the other one is soon gone.
        for process in processes_with(waiting):
            with suppress(OSError):
                place = Path(f"/proc/{process}/root{file}")
                unread = place.with_suffix(".unread")
                unread.write_text(text)
                unread.rename(place)  # whole as soon as it is there
                return True
        return False

    until(written, f"a command that waits for {file}", seconds)
    until(lambda: not processes_with(waiting), f"the command has {file}", seconds)


def status_of(pid: int) -> dict[str, str]:
    """The kernel's status fields of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
