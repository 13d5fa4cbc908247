"""The frame of the page on a small screen and while data arrives: nothing is off-screen, and nothing jumps."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Finished, Visit
from tests.browser.setting import Setting
from tests.browser.shelf import Shelf
from tests.browser.visitor import NARROW, Theme

pytestmark = [pytest.mark.sandbox]

JUMP = 0.1
"""What Web Vitals call good. The score says how much of the window moved, and how far; not how fast."""
EACH_ANSWER_IN_A_FRAME_OF_ITS_OWN = """
  const ask = window.fetch;
  window.__asking = 0;
  window.fetch = async (...given) => {
    window.__asking += 1;
    try {
      return await ask(...given);
    } finally {
      await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
      window.__asking -= 1;
    }
  };
  window.__jumps = [];
  new PerformanceObserver((list) => {
    for (const shift of list.getEntries())
      if (!shift.hadRecentInput)
        window.__jumps.push([shift.value, ...shift.sources.map(({ node }) => (node?.outerHTML ?? "?").slice(0, 160))]);
  }).observe({ type: "layout-shift", buffered: true });
"""
"""However quick the machine is: what was drawn without an answer is seen before the answer is there."""


def pages(finished: Finished, shelf: Shelf, digest: str) -> dict[str, str]:
    """Addresses, and what their heading says once they are there."""
    return {
        "/jobs": "Jobs",
        "/tasks": "Tasks",
        f"/tasks/{digest}": "",
        "/launch": "Launch",
        "/leaderboard": "Leaderboard",
        "/workers": "Workers",
        "/settings": "Settings",
        f"/jobs/{finished.oracle}": "the oracle",
        f"/jobs/{shelf.two}": "two agents",
        f"/jobs/{shelf.two}?tab=pictures": "two agents",
        f"/jobs/{shelf.mixed}?tab=failures": "one error",
        f"/jobs/{finished.oracle}?tab=search&find=passed": "the oracle",
        f"/jobs/{finished.broken}?tab=configuration": "no verdict",
        f"/trials/{finished.recorded}": "read-the-screen",
        f"/trials/{finished.recorded}?tab=logs": "read-the-screen",
        f"/trials/{finished.tested}?tab=tests": "mend-a-script",
        f"/trials/{shelf.talked}?tab=files": "kept",
        f"/compare?jobs={finished.oracle},{finished.scripted}": "Compare",
        f"/compare?jobs={shelf.two}": "Compare",
        f"/compare?left={finished.recorded}": "Compare",
        "/shared": "",
    }


@pytest.fixture(scope="module")
def digest(setting: Setting, finished: Finished) -> str:
    return str(setting.trials(finished.oracle)[0]["task"]["digest"])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_off_screen_on_any_page(
    visit: Visit, finished: Finished, shelf: Shelf, digest: str, theme: Theme
) -> None:
    found: dict[str, list[str]] = {}
    with visit(theme=theme, width=NARROW) as visitor:
        visitor.page.add_init_script(EACH_ANSWER_IN_A_FRAME_OF_ITS_OWN)
        for path, heading in pages(finished, shelf, digest).items():
            visitor.go(path)
            settled(visitor.page, heading)
            if beyond := outside(visitor.page):
                found[path] = beyond
    assert found == {}


def test_what_is_off_screen_would_be_told(visit: Visit, finished: Finished) -> None:
    with visit(width=NARROW) as visitor:
        visitor.page.add_init_script(EACH_ANSWER_IN_A_FRAME_OF_ITS_OWN)
        visitor.go("/settings")
        settled(visitor.page, "Settings")
        visitor.page.evaluate("() => { document.querySelector('h1').style.width = '500px'; }")
        assert any("Settings" in part for part in outside(visitor.page))


@pytest.mark.parametrize("width", [NARROW, 1440])
def test_nothing_jumps_while_data_arrives(
    visit: Visit, finished: Finished, shelf: Shelf, digest: str, width: int
) -> None:
    found: dict[str, object] = {}
    with visit(width=width) as visitor:
        visitor.page.add_init_script(EACH_ANSWER_IN_A_FRAME_OF_ITS_OWN)
        for path, heading in pages(finished, shelf, digest).items():
            visitor.go(path)
            settled(visitor.page, heading)
            jumps = visitor.page.evaluate("() => window.__jumps")
            if sum(value for value, *_ in jumps) > JUMP:
                found[path] = jumps
    assert found == {}


def test_a_jump_would_be_told(visit: Visit, finished: Finished) -> None:
    with visit() as visitor:
        visitor.page.add_init_script(EACH_ANSWER_IN_A_FRAME_OF_ITS_OWN)
        visitor.go("/settings")
        settled(visitor.page, "Settings")
        visitor.page.evaluate("() => { document.querySelector('h1').style.marginTop = '300px'; }")
        visitor.page.wait_for_function("() => window.__jumps.some(([value]) => value > 0.1)")


def test_the_shell_leads_everywhere(visit: Visit, finished: Finished, setting: Setting) -> None:
    with visit(theme="dark") as visitor:
        page = visitor.page
        visitor.go("/workers")
        rail = page.get_by_role("navigation", name="Main")
        for name, title in {"Jobs": "Jobs", "Tasks": "Tasks", "Compare": "Compare", "Launch": "Launch"}.items():
            rail.get_by_role("link", name=name).click()
            expect(page).to_have_title(re.compile(rf"^{title}.* · Seatrial$"))
        expect(rail.get_by_role("link", name="Docs")).to_have_attribute("href", "/docs")
        page.keyboard.press("Control+k")
        expect(page.get_by_role("dialog").get_by_role("combobox")).to_be_focused()
        page.keyboard.type("read-the-screen")
        page.get_by_role("option", name=re.compile(f"trial {finished.recorded} read-the-screen")).click()
        expect(page).to_have_title(f"read-the-screen · trial {finished.recorded} · Seatrial")
        visitor.go("/docs")
        expect(page.locator("html.dark-mode")).to_have_count(1)


def settled(page: Page, heading: str) -> None:
    """The heading is there; for a while nothing was asked for, and no panel waits for anything."""
    if heading:
        expect(page.get_by_role("heading", level=1)).to_contain_text(heading)
    page.wait_for_function(
        """() => {
          const calm = window.__asking === 0 && !document.querySelector("[aria-busy]");
          window.__calm = calm ? (window.__calm ?? 0) + 1 : 0;
          return window.__calm > 10;
        }""",
        polling="raf",
    )


def outside(page: Page) -> list[str]:
    """What makes the page wider than the window."""
    found = page.evaluate(
        """() => {
          const room = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= room) return [];
          return [...document.querySelectorAll("body *")]
            .filter((one) => one.getBoundingClientRect().right > room + 1)
            .map((one) => one.outerHTML.slice(0, 200));
        }"""
    )
    return list(found)
