"""Keeps an attempt's files: redacts known secrets, then streams every regular file into the blobs.

Files come from a sandbox, so nothing about them is trusted: links and special files are left behind, names are checked.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from seatrial.domain.result import Result, StoredFile
from seatrial.ports.blobs import Blobs

_CHUNK = 1 << 20
REDACTED = b"[REDACTED]"
SHORTEST_SECRET = 6
"""Shorter values would blot out ordinary text; no provider's key is that short."""

_MEDIA_TYPES = {
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".txt": "text/plain",
    ".log": "text/plain",
    ".cast": "application/x-asciicast",
    ".md": "text/markdown",
    ".toml": "application/toml",
    ".png": "image/png",
}


async def keep_files(blobs: Blobs, prefix: str, root: Path, secrets: tuple[str, ...]) -> tuple[StoredFile, ...]:
    """Every regular file below ``root``, under ``prefix/`` in the blobs; ``root`` is used up by it.

    Memory stays flat whatever their size."""
    needles = [secret.encode() for secret in secrets if len(secret) >= SHORTEST_SECRET]
    if needles:
        await asyncio.to_thread(redact_tree, root, needles)
    names = await asyncio.to_thread(_clear_away, root)
    sizes = await blobs.take_folder(prefix, root, names)
    found = zip(names, sizes, strict=True)
    return tuple(StoredFile(path=name, size=size, media_type=media_type(name)) for name, size in found)


def redact_result(result: Result, secrets: Iterable[str]) -> Result:
    """The same result without the secrets: an agent's last words may be its key."""
    text = told = result.model_dump_json()
    for secret in sorted((secret for secret in secrets if len(secret) >= SHORTEST_SECRET), key=len, reverse=True):
        for spelling in {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}:
            text = text.replace(spelling, REDACTED.decode())
    return result if text == told else Result.model_validate_json(text)


def _clear_away(root: Path) -> list[str]:
    """Removes what is not kept, and names what is."""
    names = list(regular_files(root))
    kept = set(names)
    for directory, subdirectories, files in os.walk(root, followlinks=False):
        below = directory.removeprefix(str(root)).lstrip("/")
        links = [name for name in subdirectories if Path(directory, name).is_symlink()]
        for name in (*files, *links):
            if (f"{below}/{name}" if below else name) not in kept:
                Path(directory, name).unlink()
    return names


def regular_files(root: Path) -> Iterator[str]:
    """Regular files only, by their path below ``root`` and in order of it; never through a link."""
    for directory, subdirectories, names in os.walk(root, followlinks=False):
        subdirectories.sort()
        below = directory.removeprefix(str(root)).lstrip("/")
        for name in sorted(names):
            path = f"{below}/{name}" if below else name
            if _is_storable(path) and stat.S_ISREG(os.lstat(f"{directory}/{name}").st_mode):
                yield path


def media_type(name: str) -> str:
    return _MEDIA_TYPES.get(os.path.splitext(name)[1].lower(), "application/octet-stream")  # noqa: PTH122


def redact_tree(root: Path, secrets: list[bytes], chunk: int = _CHUNK) -> None:
    """Replaces each secret by ``[REDACTED]`` in every file that holds one, text or not."""
    pattern = re.compile(b"|".join(re.escape(secret) for secret in sorted(secrets, key=len, reverse=True)))
    overlap = max(map(len, secrets)) - 1
    _redact_names(root, pattern)
    for path in [root / name for name in regular_files(root)]:
        if _mentions(path, pattern, overlap, chunk):
            _rewrite(path, pattern, overlap, chunk)


def _redact_names(root: Path, pattern: re.Pattern[bytes]) -> None:
    """Names are kept in the store and in the blobs. The innermost go first, so that no path changes on the way."""
    for folder, subdirectories, names in os.walk(root, topdown=False, followlinks=False):
        for name in (*names, *subdirectories):
            clean = os.fsdecode(pattern.sub(REDACTED, os.fsencode(name)))
            if clean != name:
                Path(folder, name).rename(_free_name(Path(folder, clean)))


def _mentions(path: Path, pattern: re.Pattern[bytes], overlap: int, chunk: int) -> bool:
    tail = b""
    with path.open("rb") as source:
        while piece := source.read(chunk):
            window = tail + piece
            if pattern.search(window):
                return True
            tail = window[-overlap:]
    return False


def _rewrite(path: Path, pattern: re.Pattern[bytes], overlap: int, chunk: int) -> None:
    """A secret may lie across two pieces, so the last ``overlap`` bytes of each wait for the next one."""
    clean = _free_name(path.with_name(path.name + ".redacted"))
    with path.open("rb") as source, clean.open("xb") as sink:
        held = b""
        while piece := source.read(chunk):
            text = pattern.sub(REDACTED, held + piece)
            cut = max(len(text) - overlap, 0)
            sink.write(text[:cut])
            held = text[cut:]
        sink.write(pattern.sub(REDACTED, held))
    clean.chmod(stat.S_IMODE(path.lstat().st_mode))
    clean.replace(path)


def _free_name(wanted: Path) -> Path:
    """Whatever the agent called its files, none of them is overwritten, nor is a link of its followed."""
    while os.path.lexists(wanted):
        wanted = wanted.with_name(wanted.name + "~")
    return wanted


def _is_storable(name: str) -> bool:
    return name.isprintable() and "\\" not in name
