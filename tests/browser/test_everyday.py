"""Small things that people rely on: the keyboard, links that can be pasted, files to take away, keys that stay secret,
and a page that says so when the service is gone."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Request, expect

from tests.browser.archives import talking_task
from tests.browser.conftest import Finished, Visit
from tests.browser.setting import Setting
from tests.browser.shelf import MANY, Shelf
from tests.browser.test_accessible import violations
from tests.browser.visitor import NARROW, WIDE, Theme, confirm

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
        page.keyboard.press("g")
        page.wait_for_timeout(1500)  # as slow as a person or a machine may be
        page.keyboard.press("j")
        expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("Control+k")
        expect(page.get_by_role("dialog").get_by_role("combobox")).to_be_focused()
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
        visitor.go(pasted.removeprefix(visitor.base))
        expect(page.get_by_role("searchbox", name="Agent")).to_have_value("terminus-2")
        expect(rows).to_contain_text("scripted")
        expect(rows).not_to_contain_text("the oracle")
        visitor.go(f"/trials/{finished.recorded}?step={finished.code_shown}")
        expect(page.locator(f"[data-step='{finished.code_shown}']")).to_be_visible()
        expect(page.locator("[data-player]")).to_contain_text("Code 1 of 3")
        expect(page.locator("[data-player]")).not_to_contain_text("ALL CODES ACCEPTED")
        expect(page.locator("[data-needle]")).to_be_visible()


def test_pages_have_addresses_titles_and_an_order_that_can_be_pasted(
    visit: Visit, finished: Finished, shelf: Shelf
) -> None:
    with visit() as visitor:
        page = visitor.page
        visitor.go("/?name=oracle")
        page.wait_for_url(re.compile(r"/jobs\?name=oracle$"))
        expect(page).to_have_title("Jobs · Seatrial")
        visitor.go(f"/jobs/{finished.oracle}")
        expect(page).to_have_title(f"the oracle · job {finished.oracle} · Seatrial")
        visitor.go(f"/trials/{finished.recorded}")
        expect(page).to_have_title(f"read-the-screen · trial {finished.recorded} · Seatrial")
        visitor.go(f"/jobs/{shelf.many}")
        heading = page.get_by_role("table", name="trials").get_by_role("columnheader", name="Trial")
        heading.get_by_role("button").click()
        page.wait_for_url(re.compile(r"sort=trials\.\w+\.up"))
        visitor.reload()
        expect(heading).to_have_attribute("aria-sort", "ascending")


def test_the_palette_finds_tasks_and_jobs_by_name(visit: Visit, finished: Finished) -> None:
    with visit() as visitor:
        page = visitor.page
        visitor.go("/workers")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Workers")
        page.keyboard.press("Control+k")
        expect(page.get_by_role("dialog").get_by_role("combobox")).to_be_focused()
        page.keyboard.type("oracle")
        expect(page.get_by_role("option", name=re.compile("the oracle"))).to_be_visible()
        page.keyboard.press("Control+a")
        page.keyboard.type("read-the")
        page.get_by_role("option", name=re.compile("task read-the-screen")).click()
        expect(page).to_have_title("read-the-screen · Tasks · Seatrial")


def test_a_failed_trial_says_why(visit: Visit, setting: Setting, finished: Finished) -> None:
    job = setting.run(["mend-a-script"], agent="nop")
    [trial] = setting.trials(job)
    with visit() as visitor:
        page = visitor.page
        visitor.go(f"/trials/{trial['id']}")
        why = page.get_by_role("region", name="Why it failed")
        expect(why.get_by_role("region", name=re.compile("^What .* says$")).first).to_contain_text("AssertionError")
        expect(why.get_by_role("region", name="The verifier's last lines")).to_contain_text("failed")
        expect(why.get_by_role("region", name="The task's instruction")).not_to_be_empty()
        visitor.go(f"/trials/{finished.recorded}")
        expect(page.get_by_role("heading", level=1)).to_contain_text("read-the-screen")
        expect(why).to_have_count(0)


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
        ("/jobs/{many}?task=task-007", "trials as CSV", "Trial", MANY // 100),
        ("/jobs/{many}", "task by configuration as CSV", "Task", 100),
        ("/jobs/{oracle}", "configurations as CSV", "Configuration", 1),
        ("/trials/{tested}?tab=tests", "tests as CSV", "Test", None),
        ("/trials/{recorded}?tab=calls", "model calls as CSV", "Model", "calls"),
        ("/tasks", "tasks as CSV", "Task", None),
        ("/workers", "workers as CSV", "Worker", 1),
        ("/settings", "limits as CSV", "Set by", 12),
        ("/settings", "sandboxes as CSV", "Sandbox", 3),
    ],
)
def test_tables_can_be_taken_away(
    visit: Visit, finished: Finished, shelf: Shelf, path: str, button: str, column: str, rows: int | str | None
) -> None:
    there = path.format(many=shelf.many, oracle=finished.oracle, tested=finished.tested, recorded=finished.recorded)
    with visit() as visitor:
        visitor.go(there)
        saved = _saved(visitor.page, button)
    assert saved
    assert column in saved[0]
    expected = getattr(finished, rows) if isinstance(rows, str) else rows
    assert expected is None or len(saved) == expected


def test_every_row_is_taken_away_in_the_order_that_is_shown(visit: Visit, shelf: Shelf, setting: Setting) -> None:
    """Whatever was scrolled into sight or loaded until then: of trials two hundred, of jobs fifty."""
    with visit() as visitor:
        page = visitor.page
        visitor.go(f"/jobs/{shelf.many}")
        heading = page.get_by_role("table", name="trials").get_by_role("columnheader", name="Trial")
        heading.get_by_role("button").click()
        expect(heading).to_have_attribute("aria-sort", "ascending")
        trials = [int(row["Trial"]) for row in _saved(page, "trials as CSV")]
        visitor.go("/")
        expect(page.get_by_role("table", name="jobs")).to_be_visible()
        jobs = {int(row["#"]) for row in _saved(page, "jobs as CSV")}
    assert len(trials) == MANY
    assert trials == sorted(trials)
    assert jobs == {job["id"] for job in setting.jobs()}
    assert len(jobs) > 50


def test_a_file_that_cannot_be_made_is_not_made(visit: Visit, shelf: Shelf) -> None:
    with visit() as visitor:
        page = visitor.page
        visitor.expected = ["500"]
        visitor.go(f"/jobs/{shelf.many}")
        expect(page.get_by_role("table", name="trials")).to_be_visible()
        page.route(
            re.compile(r"/trials\?.*cursor="),
            lambda route: route.fulfill(status=500, json={"error": {"code": "fault", "message": "The disk is gone."}}),
        )
        page.get_by_role("button", name="trials as CSV").click()
        expect(page.get_by_text("Nothing was saved: The disk is gone.")).to_be_visible()
        page.unroute_all()
        assert len(_saved(page, "trials as CSV")) == MANY


def _saved(page: Page, button: str) -> list[dict[str, str]]:
    with page.expect_download() as download:
        page.get_by_role("button", name=button).click()
    return list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))


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
        with page.expect_request(lambda request: KEY in str(request.headers)):
            page.get_by_label(re.compile("OPENROUTER_API_KEY")).fill(KEY)
        expect(page.get_by_role("button", name="Copy as CLI")).to_be_enabled()
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


@pytest.mark.parametrize(("theme", "width"), [("light", WIDE), ("dark", NARROW)])
def test_many_tasks_are_chosen_at_once_and_the_form_is_sent_as_a_link(
    visit: Visit, finished: Finished, theme: Theme, width: int
) -> None:
    """In an order that stays: nothing that is chosen moves under the hand that goes on choosing."""
    with visit(theme=theme, width=width) as visitor:
        page = visitor.page
        visitor.go("/launch")
        tasks = page.get_by_role("group", name="tasks", exact=True)
        expect(tasks.get_by_text("answer-file", exact=True)).to_be_visible()
        order = tasks.get_by_role("checkbox").count(), tasks.inner_text()
        first, last = sorted(map(_place(tasks), ("answer-file", "read-the-screen")))
        tasks.get_by_role("checkbox").nth(first).click()
        tasks.get_by_role("checkbox").nth(last).click(modifiers=["Shift"])
        chosen = page.get_by_role("list", name="Chosen tasks")
        expect(tasks.get_by_role("checkbox", checked=True)).to_have_count(last - first + 1)
        assert (tasks.get_by_role("checkbox").count(), tasks.inner_text()) == order
        page.get_by_role("button", name="Clear", exact=True).first.click()
        page.get_by_label("Search tasks").fill("-THE-")
        page.get_by_role("button", name=re.compile(r"Select \d+ that match")).click()
        page.get_by_label("Search tasks").fill("")
        expect(chosen).to_contain_text("read-the-screen")
        expect(chosen).not_to_contain_text("answer-file")
        page.get_by_label("Attempts at each task").fill("7")
        page.wait_for_url(re.compile(r"attempts=7"))
        names = chosen.get_by_role("button").all_inner_texts()
        assert len(page.url) < 100 + 11 * len(names)
        visitor.reload()
        expect(chosen.get_by_role("button")).to_have_text(names)
        expect(page.get_by_label("Attempts at each task")).to_have_value("7")
        chosen.get_by_role("button", name="Remove read-the-screen").click()
        expect(chosen).not_to_contain_text("read-the-screen")
        assert violations(page) == []


def _place(tasks: Locator) -> Callable[[str], int]:
    names = [text.splitlines()[0] for text in tasks.locator("label").all_inner_texts()]
    return names.index


def test_a_job_is_cloned_with_the_options_of_each_agent(visit: Visit, setting: Setting, finished: Finished) -> None:
    model = {"name": "terminus-2", "model": "scripted/give-up"}
    agents = [{**model, "options": {"temperature": degrees}} for degrees in (0.1, 0.7)]
    body = {"tasks": ["answer-file"], "agents": agents, "name": "two temperatures"}
    job = setting.client.post("/api/v1/jobs", json=body).raise_for_status().json()["id"]
    with visit() as visitor:
        page = visitor.page
        visitor.go(f"/jobs/{job}")
        page.get_by_role("link", name="Clone").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(f"Launch job {job} again")
        expect(page.get_by_role("list", name="Configurations")).to_contain_text("temperature=0.7")
        summary = page.get_by_role("region", name="Summary")
        expect(summary).to_contain_text(re.compile(r"trials\s*2"))
        summary.get_by_role("button", name="Launch", exact=True).click()
        page.wait_for_url(re.compile(r"/jobs/\d+"))
        again = int(page.url.rpartition("/")[2])
        kept = [setting.client.get(f"/api/v1/jobs/{one}").json()["spec"] for one in (job, again)]
        assert kept[0] == kept[1]
        expect(page.get_by_role("button", name="Delete", exact=True)).to_be_enabled()
        page.get_by_role("button", name="Delete", exact=True).click()
        page.get_by_role("dialog", name="Delete the job").get_by_role("button", name="Keep it").click()
        assert setting.client.get(f"/api/v1/jobs/{again}").is_success
        confirm(page, "Delete", "Delete the job")
        expect(page.get_by_role("table", name="jobs")).to_be_visible()
        assert setting.client.get(f"/api/v1/jobs/{again}").status_code == 404


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
        visitor.go("/?name=oracle")
        expect(page.get_by_text("The live connection is lost.")).to_be_visible()
        expect(page.get_by_role("table", name="jobs")).to_contain_text("the oracle")
        page.unroute("**/api/v1/events*")
        expect(page.locator("[data-line=open]")).to_have_count(1)
        expect(page.get_by_text("The live connection is lost.")).to_have_count(0)


def test_workers_tell_who_runs_what_in_which_sandbox(visit: Visit, setting: Setting, tmp_path: Path) -> None:
    [task] = setting.upload(talking_task(tmp_path, "takes-long", "sleep 3600"))
    with visit() as visitor:
        page = visitor.page
        visitor.go("/workers")
        table = page.get_by_role("table", name="running trials")
        expect(page.get_by_text("No trial is running.")).to_be_visible()
        job = setting.launch([task], "terminus-2", "scripted/shell")
        row = table.get_by_role("row").filter(has_text="takes-long")
        expect(row).to_contain_text("agent")
        sandbox = row.get_by_role("cell").nth(5).inner_text()
        working = page.get_by_role("table", name="workers").get_by_role("row").nth(1).get_by_role("cell").nth(4)
        expect(working).to_have_text(re.compile(rf"^{re.escape(sandbox)}(,|$)"))
        setting.client.post(f"/api/v1/jobs/{job}/cancel").raise_for_status()
        expect(page.get_by_text("No trial is running.")).to_be_visible()


def test_nothing_jumps_when_rows_arrive(visit: Visit, setting: Setting, finished: Finished) -> None:
    """Who reads further down goes on reading there; the mark of the keyboard stays on its row."""
    with visit() as visitor:
        page = visitor.page
        visitor.go("/")
        table = page.get_by_role("table", name="jobs")
        expect(table).to_have_attribute("aria-rowcount", str(len(setting.jobs()) + 1))
        table.focus()
        page.keyboard.press("j")
        marked = page.locator("[data-at] a").first  # its number; when it was launched is told anew
        number = marked.inner_text()
        table.evaluate("(at) => { at.scrollTop = 345; }")
        read = page.get_by_label(f"Select {setting.jobs()[14]['id']}", exact=True)
        expect(read).to_be_in_viewport()  # a frame was drawn since
        before = read.bounding_box()
        setting.launch(["answer-file"], "nop", name="arrived above")
        expect(table).to_have_attribute("aria-rowcount", str(len(setting.jobs()) + 1))
        page.wait_for_timeout(300)
        assert read.bounding_box() == before
        table.evaluate("(at) => { at.scrollTop = 0; }")
        expect(table).to_contain_text("arrived above")
        expect(marked).to_have_text(number)


def test_the_documentation_of_the_api_has_the_theme_of_the_page(visit: Visit) -> None:
    """Dark where the system is dark, light if that was chosen on the page; nothing breaks the content policy."""
    with visit(theme="dark") as visitor:
        page = visitor.page
        visitor.go("/docs")
        expect(page.locator(".opblock").first).to_be_visible()
        expect(page.locator("html")).to_have_class("dark-mode")
        expect(page.locator("html")).to_have_css("background-color", "rgb(28, 32, 34)")
        page.evaluate("localStorage.setItem('seatrial.theme', 'light')")
        visitor.reload()
        expect(page.locator(".opblock").first).to_be_visible()
        expect(page.locator("html")).not_to_have_class("dark-mode")
