"""Folders of sandboxes without a record: their process was killed right after it made them, or while it removed them.

A record is written into a folder just after the folder is made, and goes just before the folder does. So a folder of
ours without one, that nobody has touched for a while, belongs to nobody.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from seatrial.sandboxes.host.root_mount import RootMount
from seatrial.sandboxes.record import FILE, remove_recorded

_NAME = re.compile(r"st-[0-9a-z-]+")
_UNTOUCHED_SEC = 600.0


def remove_strays(run_dir: Path, now: float) -> int:
    """Says how many. Blocking."""
    return sum(_remove(directory) for directory in find_strays(run_dir, now))


def find_strays(run_dir: Path, now: float) -> list[Path]:
    places = sorted(run_dir.iterdir()) if run_dir.is_dir() else []
    return [place for place in places if _NAME.fullmatch(place.name) and _is_stray(place, now)]


def _is_stray(place: Path, now: float) -> bool:
    with suppress(OSError):
        return not place.is_symlink() and place.is_dir() and not (place / FILE).exists() and _is_old(place, now)
    return False


def _is_old(place: Path, now: float) -> bool:
    return place.stat().st_mtime < now - _UNTOUCHED_SEC


def _remove(directory: Path) -> bool:
    RootMount(directory).end()
    return not remove_recorded(directory)
