"""A job that stops when settled, from the launch form to its answer, and its failed trials in groups."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.setting import Setting
from tests.browser.test_accessible import violations
from tests.browser.visitor import NARROW, WIDE
from tests.task_files import write_task

pytestmark = [pytest.mark.sandbox]

_FITS = "([part, width]) => part.getBoundingClientRect().right <= width && part.scrollWidth <= part.clientWidth"


@pytest.fixture(scope="module")
def settled(setting: Setting, tmp_path_factory: pytest.TempPathFactory) -> int:
    folder = tmp_path_factory.mktemp("settled")
    tasks = setting.upload(*(write_task(folder, f"settled-{number}", tag=f"settled-{number}") for number in range(8)))
    agents = [{"name": "oracle"}, {"name": "nop"}]
    return setting.run(tasks, name="until settled", agents=agents, attempts=5, until_settled={"seed": 1})


def test_the_launch_form_offers_it(visit: Visit) -> None:
    with visit(bypass_csp=True) as visitor:
        page = visitor.page
        visitor.go("/launch")
        how = page.get_by_role("region", name="Options")
        expect(how.get_by_label("Margin, points")).to_have_count(0)
        expect(how).to_be_visible()
        how.get_by_label("Stop when settled").check()
        expect(how.get_by_label("Attempts at each task, at most")).to_have_value("5")
        expect(how.get_by_label("Margin, points")).to_have_value("3")
        expect(how.get_by_label("Alpha")).to_have_value("0.05")
        page.wait_for_url(re.compile("untilSettled=yes"))
        visitor.reload()
        expect(how.get_by_label("Stop when settled")).to_be_checked()
        assert violations(page) == []


def test_the_page_says_what_was_found_and_why_trials_failed(visit: Visit, setting: Setting, settled: int) -> None:
    found = setting.client.get(f"/api/v1/jobs/{settled}/report").json()["settled"]
    groups = setting.client.get(f"/api/v1/jobs/{settled}/failures").json()["groups"]
    assert (found["finding"], found["not_needed"] > 0, len(groups)) == ("a better", True, 1)
    with visit(bypass_csp=True) as visitor:
        page = visitor.page
        visitor.go(f"/jobs/{settled}")
        answer = page.get_by_role("region", name="Until settled")
        expect(answer).to_contain_text("Settled: oracle is better than nop (100.0 points at the last look).")
        expect(answer).to_contain_text(f"{found['trials_run']} of 80")
        expect(answer).to_contain_text("at most 5 % of such jobs name a winner")
        told = page.get_by_role("list", name="Notices")
        expect(told).to_contain_text(f"Stopped early: {found['not_needed']} planned trials were not needed")
        expect(told).not_to_contain_text("Settled:")
        page.get_by_role("tab", name="Why trials failed").click()
        why = page.get_by_role("list", name="Groups of failed trials")
        expect(why.get_by_role("listitem")).to_have_count(1)
        expect(why).to_contain_text(f"{groups[0]['count']} ×")
        expect(why).to_contain_text(groups[0]["title"])
        why.get_by_text(f"all {groups[0]['count']} trials").click()
        expect(why.get_by_role("link")).to_have_count(groups[0]["count"] + 1)
        assert violations(page) == []
        page.set_viewport_size({"width": NARROW, "height": 860})
        for part in (answer, why):
            page.wait_for_function(_FITS, arg=[part.element_handle(), NARROW])
        page.set_viewport_size({"width": WIDE, "height": 860})
        why.get_by_role("link").first.click()
        page.wait_for_url(re.compile(rf"/trials/{groups[0]['example']['trial']}$"))
    with visit(theme="dark", bypass_csp=True) as visitor:
        visitor.go(f"/jobs/{settled}?tab=failures")
        expect(visitor.page.get_by_role("list", name="Groups of failed trials")).to_contain_text("nop")
        assert violations(visitor.page) == []
