"""Terminal recordings on the host: asciicast v2 files from a sandbox."""

from __future__ import annotations

from pathlib import Path


def repair_recording(path: Path) -> bool:
    """Cuts off an incomplete last line, which a killed recorder leaves. Returns whether there was one."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        end = size
        while end > 0:
            start = max(end - 65536, 0)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end == size:
            return False
        file.truncate(end)
        return True
