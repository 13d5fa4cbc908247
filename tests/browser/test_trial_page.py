"""Looking through trials: the recording fits and moves with the steps, the transcript is searched, trials follow each
other, and a text is found in all of a job's trials."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Finished, Visit
from tests.browser.setting import Setting
from tests.browser.shelf import Shelf
from tests.browser.visitor import NARROW
from tests.waiting import until

pytestmark = [pytest.mark.sandbox]


@pytest.mark.parametrize("width", [NARROW, 1440])
def test_the_recording_fits_and_moves_with_the_steps(visit: Visit, finished: Finished, width: int) -> None:
    with visit(width=width) as visitor:
        page = visitor.page
        visitor.go(f"/trials/{finished.recorded}")
        player = page.get_by_role("region", name="Recording")
        expect(player).to_contain_text("ALL CODES ACCEPTED")  # the poster: how it ended
        until(lambda: _fits(player), "the screen fills the width that it has, and no more")
        steps = page.get_by_role("list", name="Steps")
        steps.get_by_role("button").nth(1).click()
        expect(player).not_to_contain_text("ALL CODES ACCEPTED")
        expect(player).to_contain_text("root@")
        phases = page.get_by_role("group", name="Phases")
        phases.get_by_role("button", name=re.compile("verify")).click()
        expect(player).to_contain_text("ALL CODES ACCEPTED")
        last = steps.locator("[aria-current=step]")
        expect(last).to_be_in_viewport()


def _fits(player: Locator) -> bool:
    room, screen = player.bounding_box(), player.locator(".ap-terminal, .ap-term").first.bounding_box()
    assert room and screen
    return room["width"] * 0.95 <= screen["width"] <= room["width"] + 1


def test_the_transcript_is_searched_and_shows_raw_calls(visit: Visit, finished: Finished, shelf: Shelf) -> None:
    with visit() as visitor:
        page = visitor.page
        visitor.go(f"/trials/{finished.recorded}")
        transcript = page.get_by_role("region", name="Transcript", exact=True)
        told = transcript.get_by_role("search").get_by_role("status")
        box = transcript.get_by_role("searchbox")
        box.fill("nobody wrote this")
        expect(told).to_have_text("Nothing matches “nobody wrote this”.")
        box.fill("code 1 OF")
        expect(told).to_have_text(re.compile(r"^match 1 of \d+$"))
        found = int(told.inner_text().split()[-1])
        current = transcript.locator("mark[data-current]")
        expect(current).to_have_text("Code 1 of")
        expect(current).to_be_in_viewport()
        transcript.get_by_role("button", name="Previous match").click()
        expect(told).to_have_text(f"match {found} of {found}")
        transcript.get_by_role("button", name="Next match").click()
        expect(told).to_have_text(f"match 1 of {found}")
        box.fill("")
        first = transcript.get_by_role("region", name="Step 1", exact=True)
        transcript.get_by_role("button", name="Collapse all").click()
        expect(first.get_by_role("button", expanded=False)).to_be_visible()
        transcript.get_by_role("button", name="Expand all").click()
        expect(first.get_by_role("button", expanded=True)).to_be_visible()
        expect(first).to_contain_text("You are an AI assistant")
        visitor.go(f"/trials/{shelf.talked}")
        second = transcript.get_by_role("region", name="Step 2", exact=True)
        second.get_by_role("button", name="Prompt").click()
        expect(second.get_by_role("region", name="Prompt")).to_have_text("the prompt, word for word")
        second.get_by_role("button", name="Raw answer").click()
        expect(second.get_by_role("region", name="Raw answer")).to_have_text("the answer, word for word")
        second.get_by_role("button", name="Recorded step").click()
        expect(second.get_by_role("region", name="recorded step")).to_contain_text('"step_id": 2')


def test_trials_follow_each_other(visit: Visit, setting: Setting, finished: Finished) -> None:
    ids = sorted(trial["id"] for trial in setting.trials(finished.oracle))
    with visit() as visitor:
        page = visitor.page
        visitor.go(f"/trials/{ids[0]}?tab=logs")
        way = page.get_by_role("navigation", name="Trials of the job")
        expect(way).to_contain_text("trial 1 of 3")
        expect(way.get_by_role("link", name="Previous trial")).to_have_count(0)
        way.get_by_role("link", name="Next trial").click()
        page.wait_for_url(re.compile(rf"/trials/{ids[1]}\?tab=logs$"))
        expect(way).to_contain_text("trial 2 of 3")
        page.keyboard.press("]")
        page.wait_for_url(re.compile(rf"/trials/{ids[2]}\?tab=logs$"))
        expect(way).to_contain_text("trial 3 of 3")
        page.keyboard.press("[")
        page.wait_for_url(re.compile(rf"/trials/{ids[1]}\?tab=logs$"))


def test_a_text_is_found_in_all_trials_of_a_job(
    visit: Visit, finished: Finished, shelf: Shelf, setting: Setting
) -> None:
    with visit() as visitor:
        page = visitor.page
        visitor.go(f"/jobs/{finished.scripted}?tab=search")
        panel = page.get_by_role("tabpanel", name="Search")
        panel.get_by_role("searchbox").fill("no trial says this")
        panel.get_by_role("button", name="Search").click()
        expect(panel.get_by_text("Nothing matches “no trial says this”.")).to_be_visible()
        expect(panel.get_by_role("status")).to_contain_text("0 places in 1 trial,")
        panel.get_by_role("searchbox").fill("all codes accepted")
        panel.get_by_role("button", name="Search").click()
        found = panel.get_by_role("list", name="Found")
        expect(found.locator("mark").first).to_have_text("ALL CODES ACCEPTED")
        found.get_by_role("link", name=re.compile("step")).first.click()
        page.wait_for_url(re.compile(rf"/trials/{finished.recorded}\?"))
        transcript = page.get_by_role("region", name="Transcript", exact=True)
        expect(transcript.locator("mark[data-current]")).to_have_text("ALL CODES ACCEPTED")
        job = setting.client.get(f"/api/v1/trials/{shelf.talked}").json()["job_id"]
        visitor.go(f"/jobs/{job}?tab=search&find=HELLO+WAS")
        found.get_by_role("link", name=re.compile("test-stdout.txt, line 2")).click()
        log = page.get_by_role("tabpanel", name="Logs")
        expect(log.get_by_role("status")).to_have_text("line 2; Enter for the next")
