"""Writes the few kinds of values a mapped ``task.toml`` has."""

from __future__ import annotations

import json
from collections.abc import Mapping

Value = str | int | float | bool | tuple[str, ...]


def toml_text(tables: Mapping[str, Mapping[str, Value | None]]) -> str:
    """Tables in the given order; ``""`` is the top level. Omits ``None`` values and empty tables."""
    blocks = []
    for name, table in tables.items():
        lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if value is not None]
        if lines:
            blocks.append("\n".join([f"[{name}]", *lines] if name else lines))
    return "\n\n".join(blocks) + "\n"


def _key(key: str) -> str:
    return key if key.isascii() and key.replace("_", "").replace("-", "").isalnum() else _text(key)


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, tuple):
        return f"[{', '.join(_text(item) for item in value)}]"
    return repr(value)


def _text(text: str) -> str:
    """A JSON string is a valid TOML string, except for one control character that JSON does not escape."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
