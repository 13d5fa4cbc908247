"""Reads and changes what a Linux program says about its loader and its libraries. Runs no program.

A kit's programs come from package registries. ``ldd`` would start their loader, so the files are only read here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"\x7fELF"
_LITTLE_64 = b"\x02\x01"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_ENTRY = struct.Struct("<qQ")
_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_NEEDED, _STRINGS = 1, 5
_MOST_SEGMENTS = 256
_LONGEST_NAME = 4096
_LONGEST_DYNAMIC = 1 << 20

_Read = Callable[[int, int], bytes]
"""Reads a part of the file: offset and number of bytes."""


@dataclass(frozen=True, slots=True)
class _Segment:
    kind: int
    offset: int
    address: int
    size: int


@dataclass(frozen=True, slots=True)
class Program:
    """A 64-bit program or library: its loader (empty for a static program and for a library) and what it links to."""

    machine: int
    loader: str
    needed: tuple[str, ...]
    loader_place: tuple[int, int] = (0, 0)
    """Offset and size of the loader's name in the file."""


def read_program(path: Path) -> Program | None:
    """``None`` for a file that is no such program, or a broken one."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER.size)
            if len(head) < _HEADER.size or head[:4] != _MAGIC or head[4:6] != _LITTLE_64:
                return None
            fields = _HEADER.unpack(head)
            machine, table, size, count = fields[2], fields[5], fields[9], fields[10]
            if size != _SEGMENT.size or count > _MOST_SEGMENTS:
                return None
            file.seek(table)
            segments = [_segment(file.read(_SEGMENT.size)) for _ in range(count)]

            def read(offset: int, length: int) -> bytes:
                file.seek(offset)
                return file.read(length)

            loader = next((entry for entry in segments if entry.kind == _INTERPRETER), None)
            name = read(loader.offset, min(loader.size, _LONGEST_NAME)) if loader is not None else b""
            needed = _needed(segments, read)
    except (OSError, struct.error, OverflowError, ValueError):
        return None
    place = (loader.offset, loader.size) if loader is not None else (0, 0)
    return Program(machine, name.split(b"\0")[0].decode(errors="replace"), needed, place)


def _segment(data: bytes) -> _Segment:
    kind, _, offset, address, _, size, _, _ = _SEGMENT.unpack(data)
    return _Segment(kind, offset, address, size)


def _needed(segments: list[_Segment], read: _Read) -> tuple[str, ...]:
    dynamic = next((entry for entry in segments if entry.kind == _DYNAMIC), None)
    if dynamic is None:
        return ()
    data = read(dynamic.offset, min(dynamic.size, _LONGEST_DYNAMIC))
    entries = list(_ENTRY.iter_unpack(data[: len(data) // _ENTRY.size * _ENTRY.size]))
    strings = next((value for tag, value in entries if tag == _STRINGS), None)
    base = None if strings is None else _offset_of(segments, strings)
    if base is None:
        return ()
    names = (read(base + value, 256).split(b"\0")[0] for tag, value in entries if tag == _NEEDED)
    return tuple(name.decode(errors="replace") for name in names)


def _offset_of(segments: list[_Segment], address: int) -> int | None:
    for entry in segments:
        if entry.kind == _LOAD and entry.address <= address < entry.address + entry.size:
            return address - entry.address + entry.offset
    return None


def set_loader(path: Path, program: Program, loader: str) -> None:
    """Names another loader in place. Nothing moves: some programs find data of their own at the end of their file.

    Raises ``ValueError`` if the name is longer than the old one."""
    offset, size = program.loader_place
    name = loader.encode() + b"\0"
    if len(name) > size:
        raise ValueError(f"{path.name} has no room for the name of another loader")
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(name.ljust(size, b"\0"))
