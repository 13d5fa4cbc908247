"""The page as people meet it: built, served by ``seatrial up`` with a worker and real sandboxes, in a real Chromium."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.setting import Setting
from tests.browser.shelf import Shelf, fill_shelf
from tests.browser.visitor import Visitor, visiting
from tests.command_line import ROOT, CommandLine
from tests.running_service import RunningService, service_up
from tests.task_files import write_task
from tests.waiting import LIMIT_SEC

CHROMIUM = "/usr/bin/chromium"
_QUIET = ("--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync")

Visit = Callable[..., AbstractContextManager[Visitor]]


@pytest.fixture(scope="session")
def built_page() -> None:
    """Quick when it is built already."""
    subprocess.run(["sh", "scripts/build-page.sh"], cwd=ROOT, check=True)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> Iterator[CommandLine]:
    place = tmp_path_factory.mktemp("page")
    with CommandLine(place / "home", image_cache, place) as command:
        yield command


@pytest.fixture(scope="session")
def shelf(home: CommandLine) -> Shelf:
    """Filled in a thread of its own: another module's browser may have its event loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(fill_shelf(home.home))).result()


@pytest.fixture(scope="session")
def service(home: CommandLine, shelf: Shelf, built_page: None) -> Iterator[RunningService]:
    """Started on a home that is not empty: ``shelf`` is there already."""
    with service_up(home, "-n", "3") as running:
        yield running


@pytest.fixture(scope="session")
def setting(service: RunningService) -> Iterator[Setting]:
    with service.client() as client:
        yield Setting(client)


@dataclass(frozen=True)
class Finished:
    """Jobs with something of everything in them: passed, failed, a recording, tests by name, an error."""

    oracle: int
    scripted: int
    broken: int
    """Its one trial is an error: the verifier gave no reward."""
    recorded: int
    """A trial with a recording and a trajectory."""
    tested: int
    """A trial whose tests are told one by one."""
    calls: int
    """Model calls of the recorded trial. A busy machine shows the screen late, and the model then looks once more."""
    code_shown: int
    """The step of it at which the screen already shows the first code."""


@pytest.fixture(scope="session")
def finished(setting: Setting, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    setting.samples()
    [silent] = setting.upload(write_task(tmp_path_factory.mktemp("tasks"), "no-verdict", test="true"))
    oracle = setting.run(["answer-file", "read-the-screen", "mend-a-script"], name="the oracle")
    scripted = setting.run(["read-the-screen"], "terminus-2", "scripted/solve-read-the-screen", name="scripted")
    broken = setting.run([silent], name="no verdict", retry={"max_attempts": 1})
    tested = next(trial["id"] for trial in setting.trials(oracle) if trial["task"]["name"] == "mend-a-script")
    recorded = setting.trials(scripted)[0]["id"]
    steps = json.loads(setting.file(recorded, "agent/trajectory.json"))["steps"]
    calls = sum(step["source"] == "agent" for step in steps)
    first_seen = next(step["step_id"] for step in steps[1:] if "Code 1 of 3" in json.dumps(step.get("observation")))
    return Finished(oracle, scripted, broken, recorded, tested, calls, code_shown=first_seen + 1)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of one module: while Playwright is there, its event loop is in the way of every other test's."""
    expect.set_options(timeout=LIMIT_SEC * 1000)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_QUIET), timeout=LIMIT_SEC * 1000)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser: Browser, service: RunningService) -> Visit:
    """``with visit(theme="dark", width=400) as visitor:``"""

    def begin(**options: object) -> AbstractContextManager[Visitor]:
        return visiting(browser, service.url, **options)  # type: ignore[arg-type]

    return begin
