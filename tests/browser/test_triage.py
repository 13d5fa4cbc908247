"""Triage on the page: what people add is kept and found again, lists are saved as views, and results are shared."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Finished, Visit
from tests.browser.setting import Setting
from tests.browser.shelf import Shelf
from tests.browser.test_accessible import violations
from tests.browser.visitor import NARROW, Theme
from tests.command_line import CommandLine
from tests.running_service import RunningService
from tests.waiting import LIMIT_SEC

pytestmark = [pytest.mark.sandbox]
HOSTILE = "<img src=x onerror=window.__xss=1>"


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", NARROW)])
def test_what_is_added_to_a_trial_is_kept_and_found(
    visit: Visit, setting: Setting, finished: Finished, theme: Theme, width: int
) -> None:
    trial = setting.trials(finished.oracle)[0 if theme == "light" else 1]["id"]
    score = setting.client.get(f"/api/v1/jobs/{finished.oracle}").json()["scores"]
    with visit(theme=theme, width=width, bypass_csp=True) as visitor:
        page = visitor.page
        visitor.go(f"/trials/{trial}")
        triage = page.get_by_role("region", name="Triage")
        triage.get_by_label("Reviewed").click()
        expect(triage.get_by_label("Reviewed")).to_be_checked()
        mark = triage.get_by_label("Add a tag or name=value")
        for text in (f"flaky {theme}", "cause=the network", HOSTILE.replace("=", "")):
            mark.fill(text)
            mark.press("Enter")
            expect(triage.get_by_role("button", name=f"Remove {text}")).to_be_visible()
            expect(mark).to_have_value("")
        mark.fill("a,b")
        mark.press("Enter")
        visitor.expected = ["422"]
        expect(triage.get_by_role("alert")).to_contain_text("cannot be a tag")
        triage.get_by_role("button", name="Add a note").click()
        triage.get_by_role("textbox", name="Note").fill(f"Two lines:\n{HOSTILE}")
        triage.get_by_role("button", name="Save note").click()
        expect(triage.get_by_role("list", name="Notes")).to_contain_text(HOSTILE)
        assert violations(page) == []
        visitor.reload()
        expect(triage.get_by_label("Reviewed")).to_be_checked()
        expect(triage.get_by_role("button", name="1 note")).to_be_visible()
        visitor.go(f"/jobs/{finished.oracle}?tag=flaky+{theme}&reviewed=true")
        rows = page.get_by_role("table", name="trials")
        expect(rows).to_have_attribute("aria-rowcount", "2")
        expect(rows).to_contain_text("✓ reviewed")
        expect(rows).to_contain_text("cause=the network, 1 note")
        assert page.evaluate("() => window.__xss") is None
    assert setting.client.get(f"/api/v1/jobs/{finished.oracle}").json()["scores"] == score


def test_jobs_are_renamed_pinned_and_their_lists_saved(visit: Visit, shelf: Shelf) -> None:
    with visit(bypass_csp=True) as visitor:
        page = visitor.page
        visitor.go(f"/jobs/{shelf.mixed}")
        _rename(page, "the nightly run")
        page.get_by_role("button", name="Pin", exact=True).click()
        expect(page.get_by_role("button", name="Unpin")).to_be_visible()
        visitor.go("/jobs")
        jobs = page.get_by_role("table", name="jobs")
        expect(jobs.get_by_role("row").nth(1)).to_contain_text("pinned: the nightly run")
        page.get_by_label("Status").select_option("completed")
        page.wait_for_url(re.compile("status=completed"))
        views = page.get_by_role("group", name="Saved views")
        views.get_by_role("button", name="Save view").click()
        views.get_by_label("Name of the view").fill("what is done")
        views.get_by_role("button", name="Save", exact=True).click()
        expect(views.get_by_role("button", name="Delete view")).to_be_visible()
        assert violations(page) == []
        visitor.go("/jobs")
        views.get_by_label("View").select_option("what is done")
        page.wait_for_url(re.compile("status=completed"))
        views.get_by_role("button", name="Delete view").click()
        expect(views.get_by_role("button", name="Save view")).to_be_visible()
        visitor.go(f"/jobs/{shelf.mixed}")
        page.get_by_role("button", name="Unpin").click()
        expect(page.get_by_role("button", name="Pin", exact=True)).to_be_visible()
        _rename(page, "one error")  # other tests look for it


def _rename(page: Page, name: str) -> None:
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Name of the job").fill(name)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(name)


def test_a_link_shows_one_job_until_it_is_revoked(visit: Visit, finished: Finished) -> None:
    with visit(bypass_csp=True) as owner, visit(bypass_csp=True, width=NARROW, theme="dark") as guest:
        owner.go(f"/jobs/{finished.scripted}")
        owner.page.get_by_role("button", name="Share …").click()
        dialog = owner.page.get_by_role("dialog", name="Read-only link")
        dialog.get_by_role("button", name="Create link").click()
        address = dialog.locator("[data-link]").inner_text()
        assert violations(owner.page) == []
        page = guest.page
        sent: list[str] = []
        page.on("request", lambda request: sent.append(request.url))
        guest.go(address.removeprefix(guest.base))
        expect(page.get_by_role("heading", level=1)).to_contain_text("scripted")
        expect(page.get_by_role("note")).to_contain_text(f"A read-only link to job {finished.scripted}")
        assert violations(page) == []
        trials = page.get_by_role("table", name="trials")
        trials.get_by_role("row").nth(1).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("read-the-screen")
        expect(page.get_by_role("region", name="Recording")).to_contain_text("ALL CODES ACCEPTED")
        expect(page.get_by_role("region", name="Transcript", exact=True)).to_contain_text("You are an AI")
        page.get_by_role("tab", name="Logs").click()
        expect(page.get_by_role("tabpanel", name="Logs").get_by_role("region", name="Log")).to_be_visible()
        page.get_by_role("tab", name="Files").click()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download").click()
        assert Path(download.value.path()).stat().st_size > 0
        assert violations(page) == []
        guest.reload()
        expect(page.get_by_role("heading", level=1)).to_contain_text("read-the-screen")
        expect(page.get_by_role("button", name=re.compile("Share|Cancel|Retry|New attempt|Delete"))).to_have_count(0)
        expect(page.get_by_role("link", name=re.compile("Jobs|Launch|Settings"))).to_have_count(0)
        secret = address.partition("#")[2]
        assert len(secret) > 40 and not [url for url in sent if secret in url.partition("#")[0]]
        dialog.get_by_role("button", name="Revoke").first.click()
        expect(dialog.get_by_role("list", name="Links")).to_have_count(0)
        guest.expected = ["401"]
        guest.reload()
        expect(page.get_by_role("alert")).to_contain_text("expired or was revoked")


def test_an_export_opens_from_disk(
    browser: Browser, home: CommandLine, service: RunningService, shelf: Shelf, tmp_path: Path
) -> None:
    target = tmp_path / "job.zip"
    home("job", "export", str(shelf.hostile_job), target)
    with zipfile.ZipFile(target) as archive:
        archive.extractall(tmp_path / "pages")
    context = browser.new_context(viewport={"width": NARROW, "height": 860}, offline=True)
    context.set_default_timeout(LIMIT_SEC * 1000)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: asked.append(f"dialog {dialog.message}"))
    page.goto((tmp_path / "pages" / "index.html").as_uri())
    page.get_by_role("link", name=str(shelf.hostile)).click()
    expect(page.get_by_role("heading", name="Tests")).to_be_visible()
    assert page.evaluate("() => window.__xss") is None
    assert not [url for url in asked if not url.startswith("file://")]
    assert _overflow(page) <= 0
    context.close()


def _overflow(page: Page) -> int:
    return int(page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth"))
