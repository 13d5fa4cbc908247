"""Scores as the page says them: each of one configuration, with what one must know to read it."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.archives import talking_task
from tests.browser.conftest import Visit
from tests.browser.setting import Setting
from tests.browser.shelf import Shelf
from tests.browser.test_accessible import violations
from tests.browser.visitor import NARROW, WIDE, Theme, confirm

pytestmark = [pytest.mark.sandbox]


@pytest.mark.parametrize(("theme", "width"), [("light", WIDE), ("dark", NARROW)])
def test_two_configurations_have_two_scores_and_no_mean(visit: Visit, shelf: Shelf, theme: Theme, width: int) -> None:
    with visit(theme=theme, width=width, bypass_csp=True) as visitor:
        page = visitor.page
        visitor.go("/?name=two agents")
        row = _row(page, "two agents")
        expect(row).to_contain_text(re.compile(r"100\.0 % oracle \+1 more"))
        expect(row.get_by_title(re.compile(r"nop: 0\.0 %"))).to_be_visible()
        expect(row).not_to_contain_text("50.0 %")
        [saved] = _saved(page)
        assert saved["Score"] == "oracle: 1; nop: 0"
        visitor.go(f"/jobs/{shelf.two}")
        scores = page.locator("[data-score]")
        expect(scores).to_have_count(2)
        expect(scores.nth(0)).to_contain_text(re.compile(r"oracle.*100\.0 %.*no interval: every task scored the same"))
        expect(scores.nth(1)).to_contain_text(re.compile(r"nop.*0\.0 %.*coverage 100\.0 %"))
        expect(page.get_by_role("region", name="Result")).not_to_contain_text("50.0 %")
        expect(page.get_by_role("region", name="Result")).to_contain_text(re.compile("passed.*2 of 4"))
        assert violations(page) == []


def test_an_added_attempt_is_shown_apart(visit: Visit, shelf: Shelf, setting: Setting) -> None:
    planned = setting.client.get(f"/api/v1/trials/{shelf.rerun}").json()["reruns"]
    with visit(bypass_csp=True) as visitor:
        page = visitor.page
        visitor.go(f"/jobs/{shelf.two}")
        expect(page.get_by_role("list", name="Notices")).to_contain_text("1 attempt")
        apart = page.locator("[data-added]").get_by_role("link")
        expect(apart).to_have_attribute("title", re.compile("attempt 2: passed.* added, not part of the score"))
        apart.click()
        page.wait_for_url(re.compile(rf"/trials/{shelf.rerun}$"))
        expect(page.get_by_text("not part of the score")).to_be_visible()
        assert violations(page) == []
        page.get_by_role("link", name=f"trial {planned}").click()
        page.wait_for_url(re.compile(rf"/trials/{planned}$"))
        expect(page.get_by_role("button", name="New attempt")).to_be_enabled()


def test_errors_are_not_zeros(visit: Visit, shelf: Shelf) -> None:
    with visit(theme="dark", bypass_csp=True) as visitor:
        page = visitor.page
        # By its whole name: hostile jobs have "onerror" in theirs, and a list shows only the rows in sight.
        visitor.go("/?name=one error")
        expect(_row(page, "one error")).to_contain_text(re.compile(r"50\.0 %.*coverage 66\.7 %"))
        visitor.go("/?name=only an error")
        expect(_row(page, "only an error")).to_contain_text("not scored · coverage 0.0 %")
        visitor.go(f"/jobs/{shelf.mixed}")
        score = page.locator("[data-score]")
        expect(score).to_contain_text("50.0 %")
        for told in ("coverage 66.7 %", "errors as 0: 33.3 %", "bounds 33.3 to 66.7 %"):
            expect(score).to_contain_text(told)
        assert violations(page) == []
        visitor.go(f"/jobs/{shelf.unscored}")
        expect(score).to_contain_text("not scored")
        expect(score).to_contain_text("coverage 0.0 %")
        expect(score).not_to_contain_text("errors as 0")
        page.get_by_role("link", name=re.compile("^graded-0, attempt 1: error")).click()
        expect(page.get_by_role("button", name="Retry")).to_be_enabled()


def test_what_runs_comes_first_and_what_ended_fills_the_bar(visit: Visit, setting: Setting, tmp_path: Path) -> None:
    tasks = [*setting.upload(talking_task(tmp_path, "a-runs-on", "sleep 3600"))]
    tasks += setting.upload(talking_task(tmp_path, "b-ends", "true"))
    job = setting.launch(tasks, "terminus-2", "scripted/shell")
    with visit() as visitor:
        page = visitor.page
        visitor.go(f"/jobs/{job}")
        trials = page.get_by_role("table", name="trials").get_by_role("row")
        expect(trials.filter(has_text="b-ends")).to_contain_text(re.compile("passed|failed"))
        expect(trials.nth(1)).to_contain_text(re.compile(r"running.*a-runs-on.*\d (m|s)"))
        expect(page.get_by_role("img", name=re.compile("^1 of 2 trials ended"))).to_be_visible()
        expect(page.get_by_role("region", name="Result")).to_contain_text(re.compile(r"passed[01] of 1"))
        expect(page.get_by_text(re.compile("^about .* left$"))).to_be_visible()
        confirm(page, "Cancel", "Cancel the job")
        expect(page.get_by_role("list", name="Notices")).to_contain_text("1 of 2 planned trials")
        expect(page.locator("[data-score]")).to_contain_text("coverage 50.0 %")


def _row(page: Page, name: str) -> Locator:
    return page.get_by_role("table", name="jobs").get_by_role("row").filter(has_text=name)


def _saved(page: Page) -> list[dict[str, str]]:
    with page.expect_download() as download:
        page.get_by_role("button", name="jobs as CSV").click()
    return list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
