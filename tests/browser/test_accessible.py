"""Every page in both themes through axe: names, roles, order and contrast."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Finished, Visit
from tests.browser.test_shell import EACH_ANSWER_IN_A_FRAME_OF_ITS_OWN, settled
from tests.browser.visitor import NARROW, Theme
from tests.command_line import ROOT

pytestmark = [pytest.mark.sandbox]

DESK = 1440
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.mark.parametrize(
    ("theme", "width"), [("dark", DESK), ("light", NARROW), pytest.param("light", DESK, marks=pytest.mark.long)]
)
def test_axe_finds_nothing_on_any_page(visit: Visit, finished: Finished, theme: Theme, width: int) -> None:
    found: dict[str, list[str]] = {}
    with visit(theme=theme, width=width, bypass_csp=True) as visitor:
        visitor.page.add_init_script(EACH_ANSWER_IN_A_FRAME_OF_ITS_OWN)
        for path, heading in _pages(finished).items():
            visitor.go(path)
            settled(visitor.page, heading)
            found[path] = violations(visitor.page)
    assert {path: violations for path, violations in found.items() if violations} == {}


def test_the_empty_page_and_the_dialogs_too(visit: Visit, finished: Finished) -> None:
    with visit(bypass_csp=True) as visitor:
        visitor.go("/?name=nothing-has-this-name")
        expect(visitor.page.get_by_text("No job matches these filters.")).to_be_visible()
        assert violations(visitor.page) == []
        visitor.page.keyboard.press("?")
        expect(visitor.page.get_by_role("dialog")).to_be_visible()
        assert violations(visitor.page) == []
        visitor.page.keyboard.press("Escape")
        visitor.page.keyboard.press("Control+k")
        expect(visitor.page.get_by_role("dialog").get_by_role("combobox")).to_be_focused()
        assert violations(visitor.page) == []


def test_axe_would_tell(visit: Visit, finished: Finished) -> None:
    """The positive control: the same check finds what is put there to be found."""
    with visit(bypass_csp=True) as visitor:
        visitor.go("/settings")
        expect(visitor.page.get_by_role("heading", level=1)).to_contain_text("Settings")
        visitor.page.evaluate(
            """() => document.querySelector("main").insertAdjacentHTML(
                 "beforeend", '<button></button><p style="color:#ccc;background:#fff">pale</p>')"""
        )
        told = " ".join(violations(visitor.page))
    assert "button-name" in told
    assert "color-contrast" in told


def _pages(finished: Finished) -> dict[str, str]:
    """Addresses, and what their heading says once they are there."""
    return {
        "/": "Jobs",
        "/tasks": "Tasks",
        "/launch": "Launch",
        "/workers": "Workers",
        "/settings": "Settings",
        f"/jobs/{finished.oracle}": "the oracle",
        f"/jobs/{finished.broken}?tab=configuration": "no verdict",
        f"/trials/{finished.recorded}?step=2": "read-the-screen",
        f"/trials/{finished.recorded}?tab=logs": "read-the-screen",
        f"/trials/{finished.recorded}?tab=files": "read-the-screen",
        f"/trials/{finished.recorded}?tab=calls": "read-the-screen",
        f"/trials/{finished.recorded}?tab=lock": "read-the-screen",
        f"/trials/{finished.tested}?tab=tests": "mend-a-script",
        f"/compare?jobs={finished.oracle},{finished.scripted}": "Compare",
        f"/compare?left={finished.recorded}": "Compare",
    }


def violations(page: Page) -> list[str]:
    """Of the rules that WCAG A and AA ask for, and of the best practices that axe knows."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text())
    # The player and the live terminal are other people's widgets; what is around them is ours.
    report: dict[str, Any] = page.evaluate("() => axe.run({exclude: ['.ap-player', '.xterm']})")
    return [
        f"{violation['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"
        for violation in report["violations"]
        for node in violation["nodes"][:3]
    ]
