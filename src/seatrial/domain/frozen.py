"""The one base of every value that crosses a module: immutable, strict about unknown fields."""

from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict

from seatrial.domain.described import Described


class Frozen(Described):
    """An immutable value."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def trusted[Value: BaseModel](kind: type[Value], values: dict[str, Any]) -> Value:
    """A value whose fields are known to be right: each is there, in its own type. Nothing is looked at, so it takes a
    quarter of the time; ``model_construct`` looks for defaults and aliases, and takes longer than checking does.

    For rows by the hundred, from the store to the wire. The dictionary is kept."""
    made = kind.__new__(kind)
    put = object.__setattr__  # a frozen value has no other way in
    put(made, "__dict__", values)
    put(made, "__pydantic_fields_set__", _names_of(kind))
    put(made, "__pydantic_extra__", None)
    put(made, "__pydantic_private__", None)
    return made


@cache
def _names_of(kind: type[BaseModel]) -> set[str]:
    """One set for all values of a kind: all of their fields are set, and copies get a set of their own."""
    return set(kind.model_fields)
