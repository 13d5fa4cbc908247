"""Looks into images the way a sandbox does."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from seatrial.sandboxes.images.image import Image, ImageRequest
from tests.waiting import LIMIT_SEC

Write = Callable[..., ImageRequest]


def read(image: Image, path: str) -> str | None:
    """A file as a sandbox on these layers sees it."""
    for layer in image.layers:
        found = layer / path.lstrip("/")
        if found.is_symlink() or found.exists():
            return found.read_text()
    return None


def run_in(image: Image, script: str, scratch: Path) -> str:
    """Mounts the layers as a sandbox does and runs a script in them; the mounts vanish with it."""
    for name in ("upper", "work", "root"):
        (scratch / name).mkdir(parents=True, exist_ok=True)
    lower = ":".join(str(layer) for layer in image.layers)
    options = f"lowerdir={lower},upperdir={scratch}/upper,workdir={scratch}/work"
    mount = f'mount -t overlay -o {options} overlay {scratch}/root && exec chroot {scratch}/root /bin/sh -c "$0"'
    done = subprocess.run(
        ["unshare", "--mount", "--", "sh", "-c", mount, script],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_SEC,
    )
    return done.stdout
