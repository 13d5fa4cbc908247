"""Pictures and the leaderboard as people meet them: values by pointer and keyboard, tables behind them, both themes, a
phone; and the HTML report, opened from a disk without a network."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import Visit
from tests.browser.setting import Setting
from tests.browser.shelf import Shelf
from tests.browser.test_accessible import violations
from tests.browser.visitor import NARROW, WIDE, Theme
from tests.command_line import ROOT
from tests.waiting import LIMIT_SEC

pytestmark = [pytest.mark.sandbox]

GOLDEN = json.loads((ROOT / "tests" / "golden" / "numbers.json").read_text())
TITLES = {
    "Scores with both intervals": "forest",
    "Score against dollars": "cost",
    "Tasks by disagreement": "tasks",
}
_GROUNDS = {"light": "rgb(251, 252, 252)", "dark": "rgb(14, 20, 22)"}


@pytest.mark.parametrize(("theme", "width"), [("light", WIDE), ("dark", NARROW)])
def test_pictures_say_the_golden_numbers(
    visit: Visit, shelf: Shelf, setting: Setting, theme: Theme, width: int
) -> None:
    with visit(theme=theme, width=width, bypass_csp=True) as visitor:
        page = visitor.page
        visitor.go(f"/jobs/{shelf.gallery.golden}?tab=pictures")
        pictures = page.get_by_role("region", name="Pictures")
        expect(pictures.get_by_role("figure")).to_have_count(8)
        for title, name in TITLES.items():
            figure = pictures.get_by_role("figure", name=title)
            figure.get_by_text(f"Table: {title}").click()
            expect(figure.get_by_role("table")).to_be_visible()
            assert _rows(figure) == GOLDEN["pictures"][name]
        scores = page.get_by_role("table", name="configurations", exact=True)
        for text in ("66.7 %", "25.0 to 100.0", "83.3 %", "54.2 %", "22.2 %", "0.0 to 55.6", "75.0 %", "16.7 %"):
            expect(scores).to_contain_text(text)
        _walk_a_picture(page, pictures)
        _drawn_as_in_the_file(pictures, setting, shelf.gallery.golden, 340 if width == NARROW else 560)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        assert violations(page) == []
        cells = pictures.get_by_role("figure", name="Tasks by disagreement")
        cells.get_by_role("link", name="b, alpha: 66.7 % (2/3)").click()
        page.wait_for_url(re.compile(r"/jobs/\d+\?task=b&agent=alpha$"))
        trials = page.get_by_role("table", name="trials").get_by_role("row")
        expect(trials.filter(has_text=re.compile("passed|failed"))).to_have_count(4)  # one of them was added
        assert [name for name in visitor.scripts if "Pictures" in name]


def _walk_a_picture(page: Page, pictures: Locator) -> None:
    """One stop for Tab; the arrows go on from there."""
    forest = pictures.get_by_role("figure", name="Scores with both intervals")
    told = forest.locator("[data-told]")
    forest.get_by_role("img", name="beta: 22.2 %").hover()
    expect(told).to_contain_text("tasks fixed 0.0 to 53.0 %")
    first = forest.get_by_role("img", name="alpha: 66.7 %")
    first.focus()
    expect(told).to_contain_text("tasks as a sample 25.0 to 100.0 %; tasks fixed none: needs 2 scored trials")
    expect(forest.locator(".spot[tabindex='0']")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(told).to_contain_text("beta: 22.2 % (0.0 to 55.6)")


def _drawn_as_in_the_file(pictures: Locator, setting: Setting, job: int, width: int) -> None:
    """Shapes have the same outlines on the page and in the file; each side has them written down once."""
    figure = pictures.get_by_role("figure", name="Duration of trials")
    expect(figure.locator("path")).to_have_count(3)  # a square and two crosses
    drawn: list[str] = figure.locator("path").evaluate_all("(paths) => paths.map((path) => path.getAttribute('d'))")
    file = setting.client.get(f"/api/v1/jobs/{job}/charts/durations.svg", params={"width": width}).text
    written = re.findall(r'<path d="([^"]+)"', file)
    for one, other in zip(drawn, written, strict=True):
        assert re.findall("[A-Za-z]", one) == re.findall("[A-Za-z]", other)
        numbers = [[float(number) for number in re.findall(r"-?[\d.]+", path)] for path in (one, other)]
        assert numbers[0] == pytest.approx(numbers[1], abs=0.01)


def _rows(figure: Locator) -> list[list[str]]:
    found: list[list[str]] = figure.locator("tbody tr").evaluate_all(
        "(rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    return found


def test_nothing_scored_and_hostile_names(visit: Visit, shelf: Shelf) -> None:
    with visit() as visitor:
        page = visitor.page
        pictures = page.get_by_role("region", name="Pictures")
        visitor.go(f"/jobs/{shelf.unscored}?tab=pictures")
        forest = pictures.get_by_role("figure", name="Scores with both intervals")
        expect(forest).to_contain_text("Nothing is scored: no trial has a valid result.")
        expect(forest.locator(".spot")).to_have_count(0)
        visitor.go(f"/jobs/{shelf.gallery.hostile}?tab=pictures")
        expect(pictures.get_by_role("figure", name="Tasks by disagreement")).to_contain_text("mk00")
        visitor.go("/leaderboard?since=2026-04-01")
        expect(page.get_by_role("table", name="configurations by dataset")).to_contain_text("mk00")
        assert page.evaluate("() => window.__xss") is None
        assert page.locator("main :is(script, iframe, object, embed, a[href^='javascript'])").count() == 0
        assert page.evaluate("() => document.documentElement.scrollWidth") <= WIDE


@pytest.mark.parametrize(("theme", "width"), [("dark", WIDE), ("light", NARROW)])
def test_the_leaderboard(visit: Visit, shelf: Shelf, theme: Theme, width: int) -> None:
    with visit(theme=theme, width=width, bypass_csp=True) as visitor:
        page = visitor.page
        visitor.go("/leaderboard?dataset=ranked")
        expect(page.get_by_role("heading", level=1)).to_have_text("Leaderboard")
        rows = page.get_by_role("table", name="ranked@1, 3 tasks").get_by_role("row")
        expect(rows.nth(1)).to_contain_text(re.compile(r"1leader / maker/large60\.0 %.*100\.0 %.*5\$0\.20eligible"))
        expect(rows.nth(2)).to_contain_text(re.compile(r"2chaser / maker/small20\.0 %.*eligible"))
        rows.nth(1).get_by_text("the newest of 2 eligible jobs, 2 in all").click()
        expect(rows.nth(1).get_by_role("link", name=f"job {shelf.gallery.earlier}", exact=True)).to_be_visible()
        assert violations(page) == []
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        rows.nth(1).get_by_role("link", name=f"job {shelf.gallery.later}", exact=True).click()
        page.wait_for_url(re.compile(rf"/jobs/{shelf.gallery.later}$"))
        page.get_by_role("tab", name="Pictures").click()
        trend = page.get_by_role("figure", name="Trend over jobs of ranked@1")
        expect(
            trend.get_by_role("link", name=f"job {shelf.gallery.earlier}, leader / maker/large: 40.0 %")
        ).to_be_visible()
        page.get_by_role("navigation", name="Main").get_by_role("link", name="Leaderboard").click()
        golden = page.get_by_role("table", name="a, b …, 4 tasks").get_by_role("row")
        expect(golden.nth(1)).to_contain_text(
            re.compile(r"–alpha66\.7 % 25\.0 to 100\.083\.3 %54\.2 %3\$0\.11not eligible")
        )
        expect(golden.nth(1)).to_contain_text("at least 5 trials of every task")
        expect(golden.nth(1)).to_contain_text("1 attempt was added after the plan, outside of every score.")
        assert violations(page) == []


@pytest.mark.parametrize(("theme", "width"), [("light", WIDE), ("dark", NARROW)])
def test_the_report_opens_from_a_disk_without_a_network(
    browser: Browser, setting: Setting, shelf: Shelf, tmp_path: Path, theme: Theme, width: int
) -> None:
    files = {}
    for name, job in (("golden", shelf.gallery.golden), ("hostile", shelf.gallery.hostile)):
        answer = setting.client.get(f"/api/v1/jobs/{job}/report.html").raise_for_status()
        files[name] = tmp_path / f"{name}.html"
        files[name].write_bytes(answer.content)
    context = browser.new_context(viewport={"width": width, "height": 860}, color_scheme=theme, offline=True)
    context.set_default_timeout(LIMIT_SEC * 1000)
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    for path in files.values():
        page.goto(path.as_uri())
        expect(page.get_by_role("figure")).to_have_count(8)
        ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert ground == _GROUNDS[theme], "the policy lets its own style sheet through"
        assert page.evaluate("() => window.__xss") is None
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        assert page.locator("script").count() == 0
    page.goto(files["golden"].as_uri())
    assert [_rows(page.get_by_role("region", name="Table: Scores", exact=True))[0][:4]] == [
        ["alpha", "66.7 % (25.0 to 100.0)", "83.3 %", "54.2 %"]
    ]
    forest = page.get_by_role("figure").filter(has=page.get_by_role("heading", name="Scores with both intervals"))
    forest.get_by_text("Table: Scores with both intervals").click()
    assert _rows(forest) == GOLDEN["pictures"]["forest"]
    expect(page.get_by_role("img", name=re.compile("^Scores with both intervals"))).to_be_visible()
    assert violations(page) == []
    assert complaints == [] and {url.partition(":")[0] for url in asked} == {"file"}
    context.close()
