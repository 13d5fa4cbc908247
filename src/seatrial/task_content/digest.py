"""The content digest that identifies a task on every machine.

It covers what can change how a task runs: each file's path, executable bit and bytes; each link's path and target. It
does not cover dates, owners, other mode bits, empty folders, and files that ``tree`` excludes (``.git``,
``__pycache__``, ``.DS_Store``). Packing and unpacking a task does not change its digest.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from seatrial.task_content.tree import Entry, walk


def content_digest(root: Path) -> str:
    """``sha256:`` and 64 hex digits. Reads every file once, in pieces. Blocking; call it in a thread."""
    whole = hashlib.sha256(b"seatrial task 1\n")
    for entry in walk(root):
        kind, digest = _fingerprint(entry)
        # Length prefixes: no choice of names and contents can imitate another tree.
        path = os.fsencode(entry.path)
        whole.update(b"%s %d " % (kind, len(path)) + path + digest)
    return f"sha256:{whole.hexdigest()}"


def _fingerprint(entry: Entry) -> tuple[bytes, bytes]:
    if entry.is_link:
        return b"link", hashlib.sha256(os.fsencode(os.readlink(entry.source))).digest()  # noqa: PTH115
    if not entry.is_file:
        return b"other", b""
    with entry.source.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").digest()
    return (b"program" if entry.is_executable else b"file"), digest
