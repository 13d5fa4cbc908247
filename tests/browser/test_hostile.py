"""Fifty attacks in every text that a task, a sandbox or an agent can put on a page: shown as text, and nothing else.

A script that ran would set ``window.__xss``; dialogs, requests to other servers and complaints of the browser about
its policy are ``trouble`` that fails the visit. The last tests show that these would be noticed.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.archives import talking_task
from tests.browser.conftest import Visit
from tests.browser.payloads import ESCAPES, MARKUP, PAYLOADS
from tests.browser.setting import Setting
from tests.browser.shelf import HOSTILE_WORDS, Shelf
from tests.host_processes import waiting_for, write_beside

pytestmark = [pytest.mark.sandbox]

_DOCKERFILE = "FROM debian:bookworm-slim\nCOPY payloads /payloads\nWORKDIR /app\n"
_TABS = ("tests", "logs", "files", "calls", "lock", "flags")


def test_there_are_fifty() -> None:
    assert len(set(PAYLOADS)) == 50


def test_names_of_jobs(visit: Visit, shelf: Shelf) -> None:
    with visit() as visitor:
        visitor.go("/")
        table = visitor.page.get_by_role("table", name="jobs")
        expect(table).to_be_visible()
        _see_every_row(visitor.page, "jobs", HOSTILE_WORDS)
        visitor.go(f"/jobs/{shelf.hostile_job}")
        expect(visitor.page.get_by_role("heading", level=1)).to_contain_text("mk01")
        visitor.go(f"/compare?jobs={shelf.hostile_job},{shelf.many}")
        expect(visitor.page.get_by_role("heading", level=1)).to_be_visible()
        visitor.page.keyboard.press("Control+k")
        expect(visitor.page.get_by_role("dialog")).to_be_visible()
        _nothing_happened(visitor.page)


def test_texts_of_tasks(visit: Visit, shelf: Shelf) -> None:
    with visit() as visitor:
        visitor.go("/tasks?q=hostile")
        _see_every_row(visitor.page, "tasks", HOSTILE_WORDS)
        visitor.go(f"/tasks/{shelf.hostile_task}")
        _says_all(visitor.page.get_by_role("tabpanel"))
        visitor.go("/launch")
        expect(visitor.page.get_by_role("group", name="tasks", exact=True)).to_contain_text("mk01")
        _nothing_happened(visitor.page)


def test_everything_that_a_trial_left(visit: Visit, shelf: Shelf) -> None:
    with visit() as visitor:
        page = visitor.page
        for tab in _TABS:
            visitor.go(f"/trials/{shelf.hostile}?tab={tab}&step=2")
            expect(page.get_by_role("heading", level=1)).to_contain_text("hostile")
            expect(page.get_by_role("list", name="Steps")).to_contain_text("mk01")
            page.wait_for_timeout(200)
            _nothing_happened(page)
        visitor.go(f"/trials/{shelf.hostile}?tab=logs&log=agent/agent.log")
        _says_all(page.locator("[data-log]"))
        visitor.go(f"/trials/{shelf.hostile}?tab=tests")
        _says_all(page.get_by_role("region", name="Tests"))
        steps = page.get_by_role("list", name="Steps")
        for wanted in ("mk01", "mk24", "esc02"):
            page.get_by_label("Search the steps").fill(wanted)
            steps.get_by_role("button").first.click()
            expect(page.locator("[data-step]")).to_contain_text(wanted)
        _nothing_happened(page)


def test_the_recording(visit: Visit, shelf: Shelf) -> None:
    with visit() as visitor:
        page = visitor.page
        visitor.go(f"/trials/{shelf.hostile}")
        player = page.locator("[data-player]")
        player.get_by_label("Play", exact=False).first.click()
        expect(player).to_contain_text("esc10")  # the one before it wipes the screen
        page.wait_for_timeout(500)
        expect(player.locator("img, script, iframe, a[href^=javascript]")).to_have_count(0)
        _nothing_happened(page)


def test_the_live_terminal(visit: Visit, setting: Setting, tmp_path: Path) -> None:
    """The same fifty through a real sandbox, as an agent's terminal shows them while it runs."""
    name = "hostile-live"
    markup, escapes = f"head -n {len(MARKUP)} /payloads", f"tail -n {len(ESCAPES)} /payloads"
    first, second, end = (waiting_for(f"/tmp/{file}", name) for file in ("first", "second", "end"))
    root = talking_task(tmp_path, name, "; ".join((first, markup, second, escapes, end)))
    (root / "environment" / "payloads").write_text("\r\n".join(PAYLOADS) + "\r\n")
    (root / "environment" / "Dockerfile").write_text(_DOCKERFILE)
    [digest] = setting.upload(root)
    job = setting.launch([digest], "terminus-2", "scripted/shell", name="hostile, live")
    trial = setting.trials(job)[0]["id"]
    with visit() as visitor:
        page = visitor.page
        visitor.go(f"/trials/{trial}")
        terminal = page.locator("[data-live-terminal]")
        # All is typed: a terminal answers some of the fifty as if somebody typed, too.
        expect(terminal).to_contain_text("finished-%d")
        write_beside("/tmp/first", name)
        expect(terminal).to_contain_text("mk24")
        made = terminal.locator("img, script, iframe, a[href^=javascript]")
        expect(made).to_have_count(0)
        write_beside("/tmp/second", name)
        expect(terminal).to_contain_text("esc10")  # the one before it wipes the screen
        expect(made).to_have_count(0)
        write_beside("/tmp/end", name)
        expect(page.get_by_text("Terminal, recorded")).to_be_visible()
        _nothing_happened(page)


def test_the_policy_stops_what_would_become_markup(visit: Visit, shelf: Shelf) -> None:
    """If some text were taken for markup one day, the page's policy would still keep its scripts from running."""
    with visit() as visitor:
        visitor.expected = [r"Content Security Policy|evil\.invalid|404|ERR_"]
        visitor.go("/settings")
        _put_as_markup(visitor.page, MARKUP)
        assert visitor.page.evaluate("() => window.__xss") is None


def test_the_detectors_would_tell(visit: Visit, shelf: Shelf) -> None:
    """The positive control: without the policy, and taken for markup, the same texts run and ask other servers."""
    ran = []
    with visit(bypass_csp=True) as visitor:
        visitor.expected = [".*"]
        for payload in MARKUP:
            visitor.go("/settings")
            _put_as_markup(visitor.page, (payload,))
            if visitor.page.evaluate("() => window.__xss") == 1:
                ran.append(payload)
        visitor.page.evaluate("() => { alert('seen'); }")
        trouble = "\n".join(visitor.trouble)
    assert len(ran) >= 10
    assert "foreign request: http://evil.invalid/pixel.png" in trouble
    assert "dialog: seen" in trouble


def _put_as_markup(page: Page, payloads: tuple[str, ...]) -> None:
    """Returns when two pictures that were asked for after the payloads have been answered."""
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.evaluate(
        """async (texts) => {
          for (const text of texts) document.querySelector("main").insertAdjacentHTML("beforeend", text);
          for (const name of ["one", "two"]) {
            await new Promise((answered) => {
              const picture = new Image();
              picture.onload = picture.onerror = answered;
              picture.src = `/no-such-picture-${name}.png`;
            });
          }
        }""",
        [payload for payload in payloads if "http-equiv" not in payload],
    )
    page.wait_for_timeout(60)


def _see_every_row(page: Page, table: str, words: tuple[str, ...]) -> None:
    """Scrolls a list from its beginning to its end, and insists that every payload was in sight."""
    expect(page.get_by_role("table", name=table).get_by_role("row").nth(1)).to_be_visible()
    seen: str = page.evaluate(
        """async (name) => {
          const table = document.querySelector(`[role=table][aria-label="${name}"]`);
          const told = table.parentElement.querySelector("[role=status]");
          let seen = '';
          for (let rest = 0; rest < 6; ) {
            seen += table.textContent;
            const before = table.scrollTop;
            table.scrollTop += 300;
            await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
            const whole = !told.textContent.startsWith("more than");
            rest = whole && table.scrollTop === before ? rest + 1 : 0;
          }
          return seen;
        }""",
        table,
    )
    assert [word for word in words if word not in seen] == []


def _says_all(place: Locator) -> None:
    """Every payload is there, and a few of them letter by letter."""
    for word in HOSTILE_WORDS:
        expect(place).to_contain_text(word)
    for payload in MARKUP[:5]:
        expect(place).to_contain_text(payload)


def _nothing_happened(page: Page) -> None:
    assert page.evaluate("() => window.__xss") is None
    expect(page).to_have_title(
        re.compile(" · Seatrial$")
    )  # what the page set; a terminal's escape would have set all of it
    suspicious = "main a[href^='javascript'], main iframe, main object, main embed, main script, main form[action]"
    assert page.locator(suspicious).count() == 0
