"""A job is exported as pages that somebody opens from disk: whatever a trial left is text there, and nothing else."""

from __future__ import annotations

import io
import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.engine.reports.static_page import page, text
from tests.api_in_process import api_open
from tests.attacks.result_reader.hostile_home import HOSTILE
from tests.browser.payloads import PAYLOADS
from tests.command_line import CommandLine

_WORDS = "html head meta title style body p h1 h2 span a div table thead tbody tr th td details summary pre code"
_TAGS = frozenset(_WORDS.split())
_ATTRIBUTES = {"class", "href", "charset", "http-equiv", "content", "name", "lang", "open"}
_LINK = re.compile(r"(trials/[0-9]+\.html|\.\./index\.html)")
_ENTRY = re.compile(r"(index|trials/[0-9]+)\.html")
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Reader(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(content)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data[:80]}")


def exported(cli: CommandLine, place: Path, *what: str) -> dict[str, str]:
    """The pages by name."""
    target = place / "out.zip"
    cli(*what, target)
    with zipfile.ZipFile(target) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def check(pages: dict[str, str]) -> None:
    for name, content in pages.items():
        assert _ENTRY.fullmatch(name), name
        found = Reader(content)
        assert {tag for tag, _ in found.tags} <= _TAGS, name
        assert {attribute for _, given in found.tags for attribute in given} <= _ATTRIBUTES, name
        links = [given["href"] or "" for _, given in found.tags if "href" in given]
        assert all(_LINK.fullmatch(link) for link in links), links
        assert all("url" not in (given.get("content") or "") for _, given in found.tags)
        assert [given["content"] for _, given in found.tags if given.get("http-equiv")] == [
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
        ]
        assert not _INVISIBLE.search(content), name


@pytest.mark.parametrize("what", [("job", "export", "1"), ("job", "export", "2"), ("trial", "export", "1")])
def test_a_hostile_trial_is_text(reader: CommandLine, tmp_path: Path, what: tuple[str, ...]) -> None:
    pages = exported(reader, tmp_path, *what)
    check(pages)
    assert set(pages) == ({"index.html", f"trials/{what[2]}.html"} if what[0] == "job" else {"index.html"})


@pytest.mark.parametrize("what", ["jobs/1", "jobs/2", "trials/1"])
async def test_a_hostile_trial_is_text_in_what_the_service_sends(reader: CommandLine, what: str) -> None:
    async with api_open(reader.home, _env_file=None) as api:
        answer = await api.client.get(f"/api/v1/{what}/static.zip")
    assert answer.headers["content-disposition"].startswith("attachment;")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        check({name: archive.read(name).decode() for name in archive.namelist()})


def test_a_link_in_the_place_of_the_archive_is_not_followed(reader: CommandLine, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (tmp_path / "out.zip").symlink_to(mine)
    (tmp_path / "dangling.zip").symlink_to(tmp_path / "nowhere")
    for name in ("out.zip", "dangling.zip", "mine"):
        assert "exists" in reader("job", "export", "3", tmp_path / name, status=2).err
    assert mine.read_text() == "mine" and not (tmp_path / "nowhere").exists()


@given(st.one_of(st.text(), st.sampled_from([*PAYLOADS, *HOSTILE.values()])))
def test_no_text_becomes_markup(content: str) -> None:
    plain = Reader(page(content, [f"<p>{text(content)}</p>"], content))
    empty = Reader(page("", ["<p></p>"], ""))
    assert plain.tags == empty.tags


def test_honest_results_are_all_there(reader: CommandLine, tmp_path: Path) -> None:
    pages = exported(reader, tmp_path, "job", "export", "3")
    check(pages)
    first, trial = Reader(pages["index.html"]), Reader(pages["trials/3.html"])
    assert "job of honest" in first.text and "1 passed" in first.text and "100.0%" in first.text
    assert ("a", {"href": "trials/3.html"}) in first.tags
    assert "Done, é 漢 🎉." in trial.text and "Do it." in trial.text and "agent/a.log" in trial.text
