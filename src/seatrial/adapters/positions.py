"""The line of each key of a TOML or YAML file, so that a problem can be shown at its line.

Used by the task readers. Neither parser keeps positions in its result. For TOML they are found by scanning the file for
keys, for YAML from the parser's nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import yaml

KeyPath = tuple[str | int, ...]
Positions = dict[KeyPath, int]

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"^\s*(\[\[?)\s*({_DOTTED})\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(rf"^\s*({_DOTTED})\s*=\s*(.*)$", re.DOTALL)
_TOKEN = re.compile(r"""\\.|\"{3}|'{3}|["'\[\]{}#]""")


def toml_positions(text: str) -> Positions:
    """Lines (from 1) of every table and key of a valid TOML text."""
    positions: Positions = {}
    table: KeyPath = ()
    counts: dict[KeyPath, int] = {}
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        if header := _HEADER.match(lines[at]):
            table = _enter(header[2], header[1] == "[[", counts)
            positions[table] = at + 1
            positions.setdefault(table[:-1] if isinstance(table[-1], int) else table, at + 1)
        elif key := _KEY.match(lines[at]):
            for depth in range(1, len(parts := _split(key[1])) + 1):
                positions.setdefault((*table, *parts[:depth]), at + 1)
            at += _value_length(key[2], lines, at) - 1
        at += 1
    return positions


def yaml_positions(text: str) -> Positions:
    """Lines (from 1) of every key and item of a valid YAML text. Aliases are not expanded."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    return dict(_nodes(root, (), set())) if root is not None else {}


def line_of(positions: Positions, path: Sequence[str | int]) -> int | None:
    """The line of the path or of its nearest known ancestor. Skips parts that are not keys (union tags)."""
    known: KeyPath = ()
    for part in path:
        if (*known, part) in positions:
            known = (*known, part)
    return positions.get(known)


def _enter(dotted: str, is_item: bool, counts: dict[KeyPath, int]) -> KeyPath:
    """The full path of a table header: names of arrays are followed by the index of their latest item."""
    path: KeyPath = ()
    names = _split(dotted)
    for name in names[:-1]:
        path = (*path, name)
        if path in counts:
            path = (*path, counts[path])
    path = (*path, names[-1])
    if is_item:
        counts[path] = counts.get(path, -1) + 1
        path = (*path, counts[path])
    return path


def _split(dotted: str) -> list[str]:
    return [part.strip("\"'") for part in re.findall(_PART, dotted)]


def _value_length(first: str, lines: list[str], at: int) -> int:
    """How many lines a value takes: until no string and no bracket is open at the end of a line."""
    quote, depth, length = "", 0, 0
    for line in (first, *lines[at + 1 :]):
        length += 1
        quote, depth = _scan(line, quote, depth)
        if depth <= 0 and not quote:
            break
    return length


def _scan(line: str, quote: str, depth: int) -> tuple[str, int]:
    """The quotation mark and the number of brackets that are open after a line."""
    for token in _TOKEN.finditer(line):
        mark = token[0]
        if quote:
            if mark == quote:
                quote = ""
        elif mark == "#":
            break
        elif mark in ("[", "{"):
            depth += 1
        elif mark in ("]", "}"):
            depth -= 1
        elif mark[0] in "\"'":
            quote = mark
    return (quote if len(quote) == 3 else ""), depth


def _nodes(node: yaml.Node, path: KeyPath, seen: set[int]) -> Iterator[tuple[KeyPath, int]]:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, str(key.value) if isinstance(key, yaml.ScalarNode) else "")
            yield here, key.start_mark.line + 1
            yield from _nodes(value, here, seen)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item.start_mark.line + 1
            yield from _nodes(item, (*path, index), seen)
