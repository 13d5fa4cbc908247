"""Comparing: inside a job and across jobs, from the verdict to the first step at which two trials part."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visit
from tests.browser.shelf import Shelf
from tests.browser.test_accessible import violations
from tests.browser.visitor import NARROW, WIDE, Theme, Visitor

pytestmark = [pytest.mark.sandbox]

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "numbers.json").read_text())["comparison"]


def test_the_configurations_of_a_job_with_the_numbers_of_the_golden_set(visit: Visit, shelf: Shelf) -> None:
    """From the job's page, with a baseline that somebody chose, in an order that the address keeps."""
    with visit() as visitor:
        page = visitor.page
        visitor.go(f"/jobs/{shelf.golden}")
        page.get_by_role("link", name="compare configurations").click()
        page.get_by_label("baseline").select_option(f"{shelf.golden}:alpha")
        expect(page.locator("[data-verdict]")).to_have_text(GOLDEN["verdict"])
        numbers = page.get_by_role("table", name="beta against alpha", exact=True)
        for text in GOLDEN["shown"]:
            expect(numbers).to_contain_text(text)
        expect(numbers).to_contain_text("cost not reported by both")
        expect(page.locator("[data-left-out]")).to_have_text("Without a valid trial on one side: d")
        _matrix_is(page, list(GOLDEN["matrix"]))
        row = page.get_by_role("table", name="tasks").get_by_role("row").nth(1)
        expect(row).to_contain_text("3/3 (100 %)")
        expect(row).to_contain_text("▼ −66.7 3/3 → 1/3")
        traits = page.get_by_role("table", name="circumstances")
        expect(traits.get_by_role("row").filter(has_text="errors: sandbox")).to_contain_text("13")
        page.get_by_label("order").select_option("disagreement")
        expect(page).to_have_url(re.compile(r"sort=tasks\.disagreement\.down"))
        _matrix_is(page, ["a", "b", "c", "d"])
        page.get_by_label("order").select_option("task")
        expect(page).to_have_url(re.compile(r"sort=tasks\.task"))
        visitor.reload()
        _matrix_is(page, ["a", "b", "c", "d"])
        page.get_by_role("button", name="Trials of b: beta against alpha").click()
        attempts = page.get_by_role("table", name="attempts")
        expect(attempts.get_by_role("row")).to_have_count(4)
        expect(attempts.get_by_role("row").nth(2)).to_contain_text("2 of 3")


@pytest.mark.parametrize(("theme", "width"), [("light", WIDE), ("dark", NARROW)])
def test_two_jobs_down_to_the_first_difference_of_two_trials(
    visit: Visit, shelf: Shelf, theme: Theme, width: int
) -> None:
    with visit(theme=theme, width=width, bypass_csp=True) as visitor:
        page = visitor.page
        _choose_jobs(visitor, shelf)
        cell = page.get_by_role("button", name=re.compile("^Trials of walk-apart: "))
        expect(cell).to_contain_text("▼ −100.0 2/2 → 0/2")
        _matrix_is(page, ["walk-apart", "walk-alike", "walk-old"])
        expect(page.get_by_role("table", name="tasks").get_by_role("row").nth(3)).to_contain_text("only in A")
        traits = page.get_by_role("table", name="circumstances")
        expect(traits.get_by_role("row").filter(has_text="agent version")).to_contain_text("oldnew")
        cell.click()
        attempts = page.get_by_role("table", name="attempts")
        expect(attempts.get_by_role("row").nth(1)).to_contain_text("test_answer: passed → failed")
        expect(page.get_by_role("table", name="tests of both sides")).to_contain_text("2 of 20 of 2")
        _is_fit_to_read(page, width)
        comparison = page.url
        attempts.get_by_role("link", name="Attempt 2 side by side").click()
        _side_by_side(page, width)
        page.get_by_role("link", name="Back to the comparison").click()
        expect(page).to_have_url(comparison)
        expect(attempts.get_by_role("row").nth(2)).to_contain_text("2 of 2")


def _choose_jobs(visitor: Visitor, shelf: Shelf) -> None:
    """In the list of jobs, where they are found by name."""
    page = visitor.page
    visitor.go("/jobs?name=walk of the")
    for job in shelf.duo:
        page.get_by_label(f"Select {job}", exact=True).check()
    page.get_by_role("button", name="Compare 2").click()
    page.wait_for_url(re.compile("/compare"))


def _side_by_side(page: Page, width: int) -> None:
    expect(page.locator("main")).to_contain_text("attempt 2 of 2")
    expect(page.locator("[data-parting]")).to_have_text("First difference: step 3.")
    expect(page.get_by_role("region", name="Tests that flipped")).to_contain_text("test_answer: passed → failed")
    steps = page.get_by_role("list", name="Steps side by side")
    expect(steps.get_by_role("listitem")).to_have_count(5)
    players = page.locator("[data-player]")
    expect(players).to_have_count(2)
    page.get_by_role("button", name="Go to the first difference").click()
    expect(page).to_have_url(re.compile("row=3"))
    expect(steps.locator("[data-first-difference]")).to_contain_text("first difference")
    expect(steps.locator("[data-side=left][data-step='3']")).to_contain_text("saw think")
    expect(steps.locator("[data-side=right][data-step='3']")).to_contain_text("saw guess")
    _shows(players, "screen of think", "screen of guess")
    _is_fit_to_read(page, width)
    steps.get_by_role("button", name="left step 4 write").click()  # the same action is opposite, at another time
    _shows(players, "screen of write", "screen of write")
    page.get_by_label("move together").uncheck()
    steps.get_by_role("button", name="left step 2 look").click()
    expect(players.nth(0)).not_to_contain_text("screen of write")
    _shows(players, "screen of look", "screen of write")
    expect(steps.get_by_text("no such step on the right")).to_have_count(1)


def _shows(players: Locator, left: str, right: str) -> None:
    expect(players.nth(0)).to_contain_text(left)
    expect(players.nth(1)).to_contain_text(right)


def _matrix_is(page: Page, tasks: list[str]) -> None:
    rows = page.get_by_role("table", name="tasks").get_by_role("row")
    for place, task in enumerate(tasks, start=1):
        expect(rows.nth(place).get_by_role("cell").first).to_have_text(task)


def _is_fit_to_read(page: Page, width: int) -> None:
    """Nothing off the screen, and nothing that axe would tell."""
    assert page.evaluate("() => document.querySelector('main').scrollWidth") <= width
    assert violations(page) == []
