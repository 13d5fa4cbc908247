"""What a person does in a day: take a task in, launch it, watch it, look closely, compare, cancel, run it again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.archives import TELLS, packed, talking_task
from tests.browser.conftest import Visit
from tests.browser.visitor import NARROW, WIDE, Theme, Visitor, confirm
from tests.host_processes import waiting_for, write_beside
from tests.task_files import write_task

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(600)]

_REMEMBER_TIMES = """(player) => {
  window.__times = new Set();
  new MutationObserver(() => {
    const time = player.querySelector(".ap-time-elapsed")?.textContent;
    if (/^\\d\\d:\\d\\d$/.test(time)) window.__times.add(time);
  }).observe(player, { childList: true, characterData: true, subtree: true });
}"""
"""Each is there for a second, in which a busy machine may not look."""


@pytest.mark.parametrize(
    ("theme", "width"), [("light", WIDE), pytest.param("dark", WIDE, marks=pytest.mark.long), ("light", NARROW)]
)
def test_from_an_archive_to_a_second_try(visit: Visit, tmp_path: Path, theme: Theme, width: int) -> None:
    name = f"talk-{theme}-{width}"
    with visit(theme=theme, width=width) as visitor:
        page = visitor.page
        _take_in(visitor, tmp_path, name)
        late = _launch(page, _late(name))
        _say(_late(name), "nothing")
        expect(page.get_by_role("button", name="Retry 1 error")).to_be_visible()
        first = _launch(page, name, "scripted/shell")
        _watch(page, name)
        expect(page.get_by_text("passed", exact=True).first).to_be_visible()
        _look_closely(page)
        second = _launch_again(visitor, name, "scripted/give-up")
        assert second > first
        _compare(visitor, first, second)
        flips = page.get_by_role("region", name="Tests that flipped")
        expect(flips.get_by_text("passed → failed")).to_be_visible()
        _cancel_and_go_on(visitor, tmp_path, name)
        expect(page.get_by_text("cancelled", exact=True).first).to_be_visible()
        _retry_the_error(visitor, late, _late(name))
        expect(page.get_by_role("button", name="Retry errors")).to_be_disabled()
        _run_again(page, _late(name))


def _late(name: str) -> str:
    return f"{name}-late"


def _say(name: str, verdict: str) -> None:
    """Tells the verifier that waits in the sandbox of this task what to answer."""
    write_beside("/tmp/verdict", name, verdict)


def _take_in(visitor: Visitor, folder: Path, name: str) -> None:
    """A broken archive is told file, line and remedy; good ones beside it are taken in all the same.

    The verifier of one of them waits to be told its verdict, by a file in its sandbox; without one it is an error."""
    wait = waiting_for("/tmp/verdict", _late(name))
    answer = "if grep 1 /tmp/verdict; then echo 1 > /logs/verifier/reward.txt; fi"
    late = packed(write_task(folder, _late(name), test=f"{wait}\n{answer}", verifier_timeout=600.0))
    talk = (waiting_for("/tmp/seen", name), "echo live-$((40 + 2))", waiting_for("/tmp/read", name), "sleep 3")
    good = packed(talking_task(folder, name, "\n".join((*talk, "echo 42 > /app/answer.txt"))))
    broken = packed(talking_task(folder, f"{name}-broken", "true"), {"task.toml": 'version = "1.0"\n[metadata\n'})
    visitor.go(f"/tasks?q={name}")
    page = visitor.page
    page.get_by_label("Archives", exact=True).set_input_files([good, broken, late])
    report = page.get_by_role("list", name="Validation report")
    expect(report.get_by_text(good.name)).to_be_visible()
    expect(report).to_contain_text("added")
    expect(report).to_contain_text("rejected")
    expect(report).to_contain_text(re.compile(r"task\.toml:2"))
    expect(page.get_by_role("row").filter(has_text=name).first).to_be_visible()


def _launch(page: Page, name: str, model: str = "") -> int:
    """With terminus-2 and a model, or with the oracle, which takes none."""
    page.get_by_role("link", name="Launch", exact=True).click()
    page.get_by_label("Search tasks").fill(name)
    page.get_by_role("group", name="tasks", exact=True).get_by_text(name, exact=True).click()
    if model:
        agents = page.get_by_role("group", name="agents", exact=True)
        agents.get_by_text("oracle", exact=True).click()
        agents.get_by_text("terminus-2", exact=True).click()
        page.get_by_label("Search models").fill(model)
        page.get_by_role("group", name="models", exact=True).get_by_text(model, exact=True).click()
    page.get_by_label("Name", exact=True).fill(f"{name} {model}")
    summary = page.get_by_role("region", name="Summary")
    expect(summary.get_by_role("button", name="Copy as CLI")).to_be_enabled()
    expect(summary).to_contain_text(re.compile(r"trials\s*1"))
    summary.get_by_role("button", name="Launch", exact=True).click()
    page.wait_for_url(re.compile(r"/jobs/\d+"))
    return int(page.url.rpartition("/")[2])


def _watch(page: Page, name: str) -> None:
    """The terminal shows what the agent types while the trial runs; nobody asks for anything anew.

    The agent types it when somebody looks, and goes on when it was read."""
    page.get_by_role("link", name=re.compile(rf"^{name}, attempt 1")).click()
    page.wait_for_url(re.compile(r"/trials/\d+"))
    terminal = page.locator("[data-live-terminal]")
    terminal.scroll_into_view_if_needed()  # what nobody sees is not drawn
    write_beside("/tmp/seen", name)
    expect(terminal).to_contain_text("live-42")
    expect(page.get_by_role("heading", name="Terminal, live")).to_be_visible()
    write_beside("/tmp/read", name)


def _look_closely(page: Page) -> None:
    player = page.locator("[data-player]")
    expect(player).to_be_visible()
    player.evaluate(_REMEMBER_TIMES)
    player.get_by_label("Play", exact=False).first.click()
    page.wait_for_function("() => window.__times.size > 1")
    expect(player).to_contain_text("live-42")
    page.get_by_role("tab", name="Tests (2/2)").click()
    for test in TELLS:
        expect(page.get_by_text(test, exact=False).first).to_be_visible()
    page.get_by_label("Search the steps").fill("answer.txt")
    page.get_by_role("list", name="Steps").get_by_role("button").first.click()
    page.wait_for_url(re.compile(r"step=\d+"))


def _launch_again(visitor: Visitor, name: str, model: str) -> int:
    job = _launch(visitor.page, name, model)
    expect(visitor.page.get_by_text("completed")).to_be_visible()
    return job


def _compare(visitor: Visitor, first: int, second: int) -> None:
    page = visitor.page
    visitor.go("/")
    for job in (first, second):
        page.get_by_label(f"Select {job}", exact=True).check()
    page.get_by_role("button", name="Compare 2").click()
    page.wait_for_url(re.compile("/compare"))
    expect(page.locator("[data-verdict]")).not_to_be_empty()
    page.get_by_role("table", name="tasks").get_by_role("row").nth(1).click()
    page.get_by_role("table", name="attempts").get_by_role("link", name="Attempt 1 side by side").click()
    expect(page.locator("[data-parting]")).to_have_text(re.compile(r"^First difference: step \d+"))


def _cancel_and_go_on(visitor: Visitor, folder: Path, name: str) -> None:
    """A job that would take long is cancelled, resumed from the page, and cancelled again."""
    page = visitor.page
    long = packed(talking_task(folder, f"{name}-long", "sleep 3600"))
    visitor.go("/tasks")
    page.get_by_label("Archives", exact=True).set_input_files([long])
    expect(page.get_by_role("list", name="Validation report")).to_contain_text("added")
    _launch(page, long.stem, "scripted/shell")
    expect(page.get_by_text("running", exact=True).first).to_be_visible()
    confirm(page, "Cancel", "Cancel the job")
    expect(page.get_by_text("cancelled", exact=True).first).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("running", exact=True).first).to_be_visible()
    confirm(page, "Cancel", "Cancel the job")


def _retry_the_error(visitor: Visitor, job: int, name: str) -> None:
    """What could not be graded is run again by one button, and the page follows."""
    page = visitor.page
    visitor.go(f"/jobs/{job}")
    expect(page.get_by_role("link", name=f"{name}, attempt 1: error")).to_be_visible()
    page.get_by_role("button", name="Retry 1 error").click()
    _say(name, "1")
    expect(page.get_by_role("link", name=f"{name}, attempt 1: passed, reward 1")).to_be_visible()


def _run_again(page: Page, name: str) -> None:
    """A graded trial is final: running it again adds an attempt, and this one keeps its result and its tries.

    The new one is told its verdict too, so that it does not keep a place from those who come after."""
    page.get_by_role("link", name=re.compile(rf"^{name}, attempt 1")).click()
    expect(page.get_by_label("Try", exact=True).get_by_role("option")).to_have_count(3)
    expect(page.get_by_text("· reward 1")).to_be_visible()
    page.get_by_role("button", name="New attempt").click()
    expect(page.get_by_text("· reward 1")).to_be_visible()
    expect(page.get_by_label("Try", exact=True).get_by_role("option")).to_have_count(3)
    _say(name, "1")
