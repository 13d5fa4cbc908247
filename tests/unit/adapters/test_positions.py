"""Lines of keys in TOML and YAML, which neither parser tells."""

from __future__ import annotations

import pytest

from seatrial.adapters.positions import line_of, toml_positions, yaml_positions

TOML = '''\
top = 1
"quoted key" = "a # b"
multi = """
fake = 1
[not.a.table]
"""
list = [
    "x]",  # ] a comment
    {inner = "}"},
]
a.b.c = 3 # [comment

[table] # comment
key = 'it''s'

[[items]]
name = "first"

[[items]]
name = "second"

[items.sub]
deep = true
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (["top"], 1),
        (["quoted key"], 2),
        (["multi"], 3),
        (["list"], 7),
        (["list", 1, "inner"], 7),
        (["a", "b", "c"], 11),
        (["table"], 13),
        (["table", "key"], 14),
        (["items", 0], 16),
        (["items", 0, "name"], 17),
        (["items", 1, "name"], 20),
        (["items", 1, "SomeUnionTag", "sub", "deep"], 23),
        (["fake"], None),
        (["not"], None),
    ],
)
def test_toml(path: list[str | int], line: int | None) -> None:
    assert line_of(toml_positions(TOML), path) == line


def test_a_long_value_takes_no_long_time() -> None:
    text = "values = [\n" + "  1,\n" * 50_000 + "]\nafter = 1\n"
    assert line_of(toml_positions(text), ["after"]) == 50_003


def test_yaml() -> None:
    positions = yaml_positions("a: 1\nb:\n  - x\n  - c: 2\n    d: 3\n")
    assert line_of(positions, ["b", 1, "d"]) == 5
    assert line_of(positions, ["b", 0]) == 3
    assert line_of(positions, ["z"]) is None
    assert yaml_positions("") == {}
