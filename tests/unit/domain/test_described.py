"""A field's meaning stands under it in the source, and in the schema; nobody reads it before a schema is wanted."""

from __future__ import annotations

from seatrial.domain.described import Described, field_texts


class Boat(Described):
    length_m: float
    """Over all,
    in metres."""
    name: str = ""
    """What is painted on it."""
    crew: int = 0


class Sloop[Sail](Boat):
    sail: Sail
    name: str = "Sloop"
    """Of the class."""


class Cutter(Sloop[int]):
    length_m: float


TEXTS = {"length_m": "Over all,\nin metres.", "name": "Of the class."}


def test_the_nearest_text_counts_and_what_has_none_has_none() -> None:
    assert field_texts(Boat) == {"length_m": "Over all,\nin metres.", "name": "What is painted on it."}
    assert field_texts(Sloop[int]) == field_texts(Cutter) == TEXTS


def test_the_schema_says_it() -> None:
    properties = Cutter.model_json_schema()["properties"]
    assert {name: value["description"] for name, value in properties.items() if "description" in value} == TEXTS
    assert set(properties) == {"length_m", "name", "crew", "sail"}
