"""The numbers that callers may send, as the OpenAPI document describes them: parameters and parts of bodies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]
METHODS = ("get", "put", "post", "patch", "delete")


@dataclass(frozen=True)
class DescribedNumber:
    method: str
    path: str
    place: str
    """``path``, ``query``, ``header``, ``cookie`` or ``body``."""
    name: tuple[str, ...]
    """The parameter, or the way to a part of the body; ``[]`` is an item, ``{}`` a value of any name."""
    schema: Schema

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path} {self.place}:{'.'.join(self.name)}"

    @property
    def is_bounded(self) -> bool:
        return "enum" in self.schema or "const" in self.schema or (self._has("inimum") and self._has("aximum"))

    def _has(self, ending: str) -> bool:
        return any(name.endswith(ending) for name in self.schema)


def described_numbers(document: Schema) -> Iterator[DescribedNumber]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method in METHODS:
                yield from _of_operation(document, path, method, operation, item.get("parameters", ()))


def _of_operation(document: Schema, path: str, method: str, operation: Schema, more: Any) -> Iterator[DescribedNumber]:
    for given in (*more, *operation.get("parameters", ())):
        parameter = _resolved(document, given)
        for name, schema in _numbers(document, parameter["schema"], (parameter["name"],), ()):
            yield DescribedNumber(method, path, parameter["in"], name, schema)
    body = _resolved(document, operation.get("requestBody", {}))
    for content in body.get("content", {}).values():
        for name, schema in _numbers(document, content.get("schema", {}), (), ()):
            yield DescribedNumber(method, path, "body", name, schema)


def _numbers(
    document: Schema, schema: Any, name: tuple[str, ...], within: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Schema]]:
    if not isinstance(schema, Mapping):
        return  # `true`: any value
    reference = schema.get("$ref")
    if reference in within:
        return  # a schema that contains itself
    if reference:
        yield from _numbers(document, _resolved(document, schema), name, (*within, reference))
    kinds = schema.get("type")
    if {"integer", "number"} & set([kinds] if isinstance(kinds, str) else kinds or ()):
        yield name, schema
    for key in ("anyOf", "oneOf", "allOf"):
        for choice in schema.get(key, ()):
            yield from _numbers(document, choice, name, within)
    for part in (*schema.get("prefixItems", ()), schema.get("items")):
        yield from _numbers(document, part, (*name, "[]"), within)
    for field, part in schema.get("properties", {}).items():
        yield from _numbers(document, part, (*name, field), within)
    for part in (schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()):
        yield from _numbers(document, part, (*name, "{}"), within)


def _resolved(document: Schema, schema: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    found: Any = document
    for part in schema["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    assert isinstance(found, Mapping)
    return found
