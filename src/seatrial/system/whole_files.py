"""Small files that others may read at any time: they see the old content or the new one, never a part."""

from __future__ import annotations

import secrets
from pathlib import Path


def write_whole(file: Path, content: str | bytes) -> None:
    """Writes beside the file, then renames. Creates the folder.

    The name beside it is random, because a folder may be shared by PID namespaces, in which two processes have the same
    number.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        draft.replace(file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
