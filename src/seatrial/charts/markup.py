"""Builds XML and HTML from elements. The only place that writes angle brackets: text and attributes are always escaped.

Characters that XML does not allow are replaced, so that what is written can always be read again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\x7f-\x9f]")
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9:-]*")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


class Markup(str):
    """Finished markup. Everything else is text."""

    __slots__ = ()


def escaped(text: str) -> Markup:
    return Markup(_FORBIDDEN.sub("\ufffd", text).translate(_ESCAPES))


def element(name: str, *children: str, **attributes: str | float | None) -> Markup:
    """``class_`` and ``aria_label`` become ``class`` and ``aria-label``; attributes that are ``None`` are left out."""
    opened = name + "".join(
        f' {_attribute(key)}="{escaped(_written(value))}"' for key, value in attributes.items() if value is not None
    )
    assert _NAME.fullmatch(name), name
    return Markup(f"<{opened}>{joined(children)}</{name}>")


def joined(parts: Iterable[str]) -> Markup:
    return Markup("".join(part if isinstance(part, Markup) else escaped(part) for part in parts))


def _attribute(key: str) -> str:
    name = key.rstrip("_").replace("_", "-")
    assert _NAME.fullmatch(name), name
    return name


def _written(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
