"""Text stays text, whatever is in it."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.charts.markup import element, escaped
from seatrial.charts.words import LONGEST, fitted, shown

ANYTHING = st.text(st.characters()) | st.text("<>&\"'/=-!?[]{}`; \n\t\x00\x0b\x1b\x85\u202e\ud800\ufffe]a")


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


@given(ANYTHING)
def test_any_text_is_read_back_as_text_by_xml_and_html(text: str) -> None:
    made = element("g", element("title", text), aria_label=text)
    root = ElementTree.fromstring(made)
    assert [child.tag for child in root] == ["title"] and list(root.attrib) == ["aria-label"]
    assert len(root[0]) == 0
    seen = Seen()
    seen.feed(made)
    assert seen.tags == ["g", "title"] and len(seen.attributes) == 1
    made.encode()


def test_honest_text_is_kept_to_the_letter() -> None:
    for text in ("a < b & c > d", "\"quoted\" 'twice'", "é 漢 🎉 עברית", "R&D; 100 % ± 4"):
        root = ElementTree.fromstring(element("g", text, aria_label=text))
        assert root.text == text and root.get("aria-label") == text


def test_markup_is_not_escaped_twice_and_strings_are_never_markup() -> None:
    assert element("g", element("a", "<b>")) == "<g><a>&lt;b&gt;</a></g>"
    assert escaped("<b>") == "&lt;b&gt;"
    with pytest.raises(AssertionError):
        element("g onload=x")


@given(ANYTHING, st.integers(2, 60))
def test_what_is_shown_is_one_short_printable_line(text: str, most: int) -> None:
    found = shown(text, most)
    assert len(found) <= most and (not found or found.isprintable())


def test_long_and_stacked_names_are_cut() -> None:
    assert shown("x" * 10_000) == "x" * (LONGEST - 1) + "…"
    assert shown("x" * LONGEST) == "x" * LONGEST
    assert shown("a" + "\u0301" * 500 + "b", 50) == "a\u0301\u0301b…" or "b" not in shown(
        "a" + "\u0301" * 500 + "b", 50
    )
    assert shown("two\nlines\tand\u202eturned") == "two lines and�turned"
    assert fitted("a long name of a task", 60) == "a long …"
