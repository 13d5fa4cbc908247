"""What people may write into notes, tags, labels and views."""

from __future__ import annotations

from datetime import timedelta

import pytest

from seatrial.domain.link import LINK_PREFIX, fresh_link_secret, link_lifetime
from seatrial.domain.triage import checked_line, checked_note, checked_query, checked_word
from seatrial.errors import InvalidInput
from seatrial.redact import BLOT, Redactor


@pytest.mark.parametrize("word", ["flaky", "not our fault", "größe", "a?b#c", "x" * 60])
def test_a_tag_is_any_short_printable_text(word: str) -> None:
    assert checked_word(f"  {word} ", "tag") == word


@pytest.mark.parametrize(
    "word", ["", "  ", "x" * 61, "a,b", "a=b", "a/b", "..", "a\nb", "\x1b[31m", "a\x00", "\u202eabc"]
)
def test_other_tags_are_refused(word: str) -> None:
    with pytest.raises(InvalidInput):
        checked_word(word, "tag")


def test_a_note_keeps_its_lines_and_loses_control_characters() -> None:
    assert checked_note(" one\r\n\ttwo\x1b[31m\udc80\x00 ") == "one\n\ttwo [31m"
    for text in ("", " \n ", "x" * 10_001):
        with pytest.raises(InvalidInput):
            checked_note(text)


def test_a_value_is_one_line() -> None:
    assert checked_line(" a = b, c ", "value", 200) == "a = b, c"
    for text in ("", "a\nb", "x" * 201):
        with pytest.raises(InvalidInput):
            checked_line(text, "value", 200)


@pytest.mark.parametrize("query", ["", "outcome=failed&sort=trials.cost.down", "?name=a%20b"])
def test_a_view_is_the_query_of_an_address(query: str) -> None:
    assert checked_query(query) == query.removeprefix("?")


@pytest.mark.parametrize("query", ["a b", "a#b", "a\nb", "ä=1", "a=" + "x" * 2000])
def test_other_queries_are_refused(query: str) -> None:
    with pytest.raises(InvalidInput):
        checked_query(query)


def test_a_link_ends_and_logs_never_show_it() -> None:
    assert link_lifetime("7d") == timedelta(days=7)
    for text in ("never", "91d", "0d"):
        with pytest.raises(InvalidInput):
            link_lifetime(text)
    secret = fresh_link_secret()
    assert secret.startswith(LINK_PREFIX) and len(secret) > 50
    assert Redactor().text(f"GET /shared {secret} HTTP") == f"GET /shared {BLOT} HTTP"
