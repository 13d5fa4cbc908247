"""The base class of all values that cross modules: immutable, unknown fields forbidden."""

from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict

from seatrial.domain.described import Described


class Frozen(Described):
    model_config = ConfigDict(frozen=True, extra="forbid")


def trusted[Value: BaseModel](kind: type[Value], values: dict[str, Any]) -> Value:
    """Creates a value without validation; every field must be present in its exact type.

    It takes a quarter of the time of validation, and a page of trials two thirds (docs/decisions/store-on-one-writer.md
    has the numbers). ``model_construct`` is slower than validation, because it resolves defaults and aliases. For
    hundreds of rows from the store to the response. Keeps the dictionary. A test compares the slots with pydantic's.
    """
    made = kind.__new__(kind)
    put = object.__setattr__  # the only way to set fields of a frozen value
    put(made, "__dict__", values)
    put(made, "__pydantic_fields_set__", _names_of(kind))
    put(made, "__pydantic_extra__", None)
    put(made, "__pydantic_private__", None)
    return made


@cache
def _names_of(kind: type[BaseModel]) -> set[str]:
    """One set for all values of a class, since all their fields are set; copies get their own set."""
    return set(kind.model_fields)


def common_values(kind: type[BaseModel], source: BaseModel) -> dict[str, Any]:
    """Values of the fields that ``source`` and ``kind`` both have, as they are. For ``trusted``."""
    values = source.__dict__
    return {name: values[name] for name in _common_names(kind, type(source))}


@cache
def _common_names(kind: type[BaseModel], source: type[BaseModel]) -> tuple[str, ...]:
    return tuple(name for name in kind.model_fields if name in source.model_fields)
