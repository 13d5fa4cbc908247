"""Small things that people rely on: the keyboard, links that can be pasted, files to take away, keys that stay secret,
and a page that says so when the service is gone."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, expect

from tests.browser.conftest import Finished, Visit
from tests.browser.shelf import MANY, Shelf

pytestmark = [pytest.mark.sandbox]

KEY = "sk-or-canary-1234567890"


def test_the_keyboard_walks_lists_and_goes_places(visit: Visit, finished: Finished) -> None:
    with visit() as visitor:
        page = visitor.page
        visitor.go("/?name=oracle")
        expect(page.get_by_role("table", name="jobs")).to_contain_text("the oracle")
        page.keyboard.press("/")
        expect(page.get_by_role("searchbox", name="Name")).to_be_focused()
        page.get_by_role("table", name="jobs").focus()
        page.keyboard.press("j")
        expect(page.locator("[data-at]")).to_contain_text("the oracle")
        page.keyboard.press("x")
        expect(page.get_by_label(f"Select {finished.oracle}", exact=True)).to_be_checked()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("the oracle")
        page.keyboard.press("g")
        page.keyboard.press("w")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Workers")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("Control+k")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.keyboard.type(f"{finished.recorded}")
        page.get_by_role("option", name=f"Go to trial {finished.recorded}").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("read-the-screen")


def test_filters_and_steps_are_links(visit: Visit, finished: Finished) -> None:
    with visit() as visitor:
        page = visitor.page
        visitor.go("/")
        page.get_by_label("Status").select_option("completed")
        page.get_by_role("searchbox", name="Agent").fill("terminus-2")
        page.wait_for_url(re.compile("agent=terminus-2"))
        pasted = page.url
        rows = page.get_by_role("table", name="jobs")
        expect(rows).to_contain_text("scripted")
        expect(rows).not_to_contain_text("the oracle")
        page.goto(pasted)
        expect(page.get_by_role("searchbox", name="Agent")).to_have_value("terminus-2")
        expect(rows).to_contain_text("scripted")
        expect(rows).not_to_contain_text("the oracle")
        visitor.go(f"/trials/{finished.recorded}?step=3")
        expect(page.locator("[data-step='3']")).to_be_visible()
        expect(page.locator("[data-player]")).to_contain_text("Code 1 of 3")
        expect(page.locator("[data-player]")).not_to_contain_text("ALL CODES ACCEPTED")
        expect(page.locator("[data-needle]")).to_be_visible()


def test_steps_recording_and_timeline_move_together(visit: Visit, finished: Finished) -> None:
    with visit() as visitor:
        page = visitor.page
        visitor.go(f"/trials/{finished.recorded}?step=2")
        player, moment = page.locator("[data-player]"), page.get_by_label("Moment")
        expect(player).to_contain_text("root@")
        expect(player).not_to_contain_text("ALL CODES ACCEPTED")
        early = float(moment.input_value())
        page.get_by_role("group", name="Phases").get_by_role("button", name=re.compile("verify")).click()
        expect(player).to_contain_text("ALL CODES ACCEPTED")
        page.wait_for_function("(early) => document.querySelector('[aria-label=Moment]').value > early", arg=early)


@pytest.mark.parametrize(
    ("path", "button", "column", "rows"),
    [
        ("/jobs/{many}", "trials as CSV", "Trial", MANY),
        ("/jobs/{oracle}", "configurations as CSV", "Configuration", 1),
        ("/trials/{tested}?tab=tests", "tests as CSV", "Test", None),
        ("/trials/{recorded}?tab=calls", "model calls as CSV", "Step", 6),
        ("/tasks", "tasks as CSV", "Task", None),
        ("/workers", "workers as CSV", "Worker", 1),
    ],
)
def test_tables_can_be_taken_away(
    visit: Visit, finished: Finished, shelf: Shelf, path: str, button: str, column: str, rows: int | None
) -> None:
    there = path.format(many=shelf.many, oracle=finished.oracle, tested=finished.tested, recorded=finished.recorded)
    with visit() as visitor:
        visitor.go(there)
        with visitor.page.expect_download(timeout=60_000) as download:
            visitor.page.get_by_role("button", name=button).click()
        saved = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
    assert saved
    assert column in saved[0]
    assert rows is None or len(saved) == rows


def test_a_key_travels_in_a_header_alone(visit: Visit, finished: Finished) -> None:
    sent: list[Request] = []
    with visit() as visitor:
        page = visitor.page
        visitor.expected = ["422"]
        page.on("request", lambda request: sent.append(request))
        visitor.go("/launch")
        page.get_by_role("group", name="tasks", exact=True).get_by_text("answer-file", exact=True).click()
        page.get_by_role("group", name="agents", exact=True).get_by_text("oracle", exact=True).click()
        page.get_by_role("group", name="agents", exact=True).get_by_text("terminus-2", exact=True).click()
        page.get_by_label("Search models").fill("openrouter/some/model")
        page.get_by_role("button", name="Use “openrouter/some/model”").click()
        page.get_by_label(re.compile("OPENROUTER_API_KEY")).fill(KEY)
        expect(page.get_by_role("button", name="Copy as CLI")).to_be_visible()
        page.wait_for_timeout(600)
        _not_kept(page)
        copied = page.evaluate("() => document.querySelector('main').innerHTML")
    with_key = [one for one in sent if KEY in str(one.headers)]
    assert with_key
    assert all("estimate" in one.url or one.url.endswith("/jobs") for one in with_key)
    assert not [one.url for one in sent if KEY in one.url or KEY in (one.post_data or "")]
    assert KEY not in copied


def _not_kept(page: Page) -> None:
    kept = page.evaluate("() => JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])")
    assert KEY not in kept


def test_an_empty_list_says_what_to_do(visit: Visit, finished: Finished) -> None:
    with visit() as visitor:
        page = visitor.page
        visitor.go("/compare")
        expect(page.get_by_text("Choose two or more jobs")).to_be_visible()
        page.get_by_role("link", name="Go to the jobs").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
        visitor.expected = ["404"]
        visitor.go("/jobs/999999")
        expect(page.get_by_role("alert")).to_contain_text("999999")
        visitor.go("/no/such/page")
        expect(page.get_by_text("There is no such page.")).to_be_visible()


def test_a_lost_line_is_told_and_found_again(visit: Visit, finished: Finished) -> None:
    with visit() as visitor:
        page = visitor.page
        visitor.expected = ["net::|Failed to load"]
        page.route("**/api/v1/events*", lambda route: route.abort())
        visitor.go("/")
        expect(page.get_by_text("The live line is lost.")).to_be_visible()
        expect(page.get_by_role("table", name="jobs")).to_contain_text("the oracle")
        page.unroute("**/api/v1/events*")
        expect(page.locator("[data-line=open]")).to_have_count(1, timeout=30_000)
        expect(page.get_by_text("The live line is lost.")).to_have_count(0)
