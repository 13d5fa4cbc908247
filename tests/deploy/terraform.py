"""Terraform's files as data: what they declare, and what they refer to. The tests of ``deploy/terraform`` read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hcl2

_REFERENCES = (
    re.compile(r"(?<![\w.])(var|local)\.(\w+)"),
    re.compile(r"(?<![\w.])(data\.\w+)\.(\w+)"),
    re.compile(r"(?<![\w.])((?:aws|random)_\w+)\.(\w+)"),
)


@dataclass
class Module:
    """One folder of ``.tf`` files. Names are pairs: ``("var", "aws_region")``, ``("aws_vpc", "main")``."""

    declared: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    referred: set[tuple[str, str]] = field(default_factory=set)

    def of_kind(self, kind: str) -> dict[str, dict[str, Any]]:
        return {name: body for (found, name), body in self.declared.items() if found == kind}


def read_module(folder: Path) -> Module:
    module = Module()
    for path in sorted(folder.glob("*.tf")):
        with path.open() as file:
            content = plain(hcl2.load(file))
        _declare(module, content)
        module.referred |= set(_references(content))
    return module


def _declare(module: Module, content: dict[str, Any]) -> None:
    for kind, prefix in (("resource", ""), ("data", "data.")):
        for block in content.get(kind, []):
            for name, bodies in block.items():
                module.declared |= {(f"{prefix}{name}", label): body for label, body in bodies.items()}
    for block in content.get("variable", []):
        module.declared |= {("var", name): body for name, body in block.items()}
    for block in content.get("locals", []):
        module.declared |= {("local", name): {"value": value} for name, value in block.items()}
    for block in content.get("output", []):
        module.outputs |= block


def plain(value: Any) -> Any:
    """Without the parser's own marks, and strings without their quotes."""
    if isinstance(value, dict):
        marks = ("__comments__", "__inline_comments__", "__is_block__")
        return {plain(name): plain(item) for name, item in value.items() if name not in marks}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1]
    return value


def _references(value: Any) -> Iterator[tuple[str, str]]:
    for text in strings(value):
        for pattern in _REFERENCES:
            yield from pattern.findall(text)


def strings(value: Any) -> Iterator[str]:
    """Every text in it; names too, because expressions may be names of a map."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from strings(name)
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
