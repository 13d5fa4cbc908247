from pathlib import Path


def lines():
    return Path("/app/guestbook.txt").read_text().splitlines()


def test_the_guestbook_is_signed():
    assert lines()[0] == "Ada Lovelace from London"


def test_the_guestbook_is_stamped_once():
    assert lines()[1:] == ["stamped after 1 signature(s)"]
