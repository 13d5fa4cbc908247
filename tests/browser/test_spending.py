"""What models cost: before a launch, live while a trial runs, and call by call when it has ended."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.archives import talking_task
from tests.browser.conftest import Visit
from tests.browser.setting import Setting

pytestmark = [pytest.mark.sandbox]

CALLS = 3
ENDLESS = "sleep 3600"
"""The scripted model asks about once a second whether it has ended, until the budget has."""


def figure(name: str) -> re.Pattern[str]:
    return re.compile(name, re.IGNORECASE)


def test_a_running_trial_shows_its_spending(visit: Visit, setting: Setting, tmp_path: Path) -> None:
    [endless] = setting.upload(talking_task(tmp_path, "endless", ENDLESS))
    budget = {"trial": {"calls": 9000}, "job": {"tokens": 900_000_000}}  # more than it can spend meanwhile
    with visit() as visitor:
        job = setting.launch([endless], "terminus-2", "scripted/shell", budget=budget, name="spends")
        trial = setting.trials(job)[0]["id"]
        visitor.go(f"/trials/{trial}")
        spending = visitor.page.get_by_role("group", name="Model spending")
        expect(spending).to_contain_text(re.compile(r"left for this trial8,\d{3} of 9,000 calls"))
        expect(spending).to_contain_text(re.compile(r"model calls[1-9]\d*tokens[1-9]"))
        expect(spending).to_contain_text(re.compile(r"left for the job[\d.]+M of 900\.0M tokens"))
        expect(spending.get_by_title(re.compile(r"^Spent .* tokens · .*; of 900\.0M tokens$"))).to_be_visible()
        visitor.go(f"/trials/{trial}?tab=calls")
        rows = visitor.page.get_by_role("table", name="model calls").get_by_role("row")
        expect(rows.nth(1)).to_contain_text("scripted/shell")
        visitor.go(f"/jobs/{job}")
        result = visitor.page.get_by_role("region", name="Result")
        expect(result).to_contain_text(re.compile("model calls[1-9]"))
    setting.client.post(f"/api/v1/jobs/{job}/cancel").raise_for_status()


def test_a_budget_ends_a_trial_and_the_page_says_so(visit: Visit, setting: Setting, tmp_path: Path) -> None:
    [endless] = setting.upload(talking_task(tmp_path, "endless", ENDLESS))
    with visit() as visitor:
        job = setting.launch(
            [endless], "terminus-2", "scripted/shell", budget={"trial": {"calls": CALLS}}, name="spent"
        )
        trial = setting.trials(job)[0]["id"]
        visitor.go(f"/trials/{trial}?tab=calls")
        expect(visitor.page.get_by_role("heading", level=1)).to_contain_text("endless")
        refused = visitor.page.get_by_role("table", name="model calls").get_by_role("row", name=figure("budget"))
        expect(refused.first).to_be_visible()
        expect(visitor.page.get_by_role("tab", name="Flags (1)")).to_be_visible()
        visitor.go(f"/trials/{trial}?tab=flags")
        expect(visitor.page.get_by_text("over budget")).to_be_visible()
    found = setting.client.get(f"/api/v1/trials/{trial}").json()
    assert found["result"]["marks"] == ["over_budget"] and found["result"]["usage"]["model_calls"] == CALLS
    assert found["outcome"] == "failed" and found["budgets"] == []


def test_the_launch_form_takes_caps_and_says_what_is_wrong_with_them(visit: Visit, setting: Setting) -> None:
    setting.samples()
    with visit() as visitor:
        page = visitor.page
        visitor.expected.append("422")  # the model has no price
        [digest] = [one["digest"] for one in setting.client.get("/api/v1/tasks?name=answer-file").json()["items"]][:1]
        visitor.go(f"/launch?agents=terminus-2&models=hosted_vllm/mine&tasks={digest.removeprefix('sha256:')}")
        told = page.get_by_role("region", name="Summary").get_by_role("status")
        expect(told).to_contain_text("hosted_vllm/mine has no known price")
        page.get_by_label("Calls for each trial").fill("1.5")
        expect(told).to_have_text("Calls for each trial must be a whole number.")
        expect(page.get_by_role("button", name="Launch", exact=True)).to_be_disabled()
        page.get_by_label("Calls for each trial").fill("20")
        page.get_by_label("Dollars for the job").fill("5")
        expect(told).to_contain_text(
            "The job's budget is in dollars, and the model hosted_vllm/mine has no known price."
        )
        page.get_by_label("Dollars for the job").fill("")
        expect(told).not_to_contain_text("budget is in dollars")
        expect(page.get_by_label("Today")).to_contain_text("no budget for a day")
        page.wait_for_url(re.compile("trialCalls=20"))
        visitor.reload()
        expect(page.get_by_label("Calls for each trial")).to_have_value("20")


def test_the_operator_sees_what_was_spent_today(visit: Visit, setting: Setting) -> None:
    spent = setting.client.get("/api/v1/budget").json()["spending"]["spent"]
    with visit() as visitor:
        visitor.go("/workers")
        today = visitor.page.get_by_role("region", name="Spent on models today")
        expect(today).to_contain_text("model calls")
        shown = int(re.sub(r"\D", "", today.inner_text().split("model calls")[1].strip().split("\n")[0]))
    assert shown >= spent["calls"]
