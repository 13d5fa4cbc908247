"""Makes docs/images from a real run: a service of its own, real trials of the samples, a real browser.

``make screenshots``. Needs what the tests need (Chromium, the sandbox); takes about a minute.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

import httpx
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
CHROMIUM = "/usr/bin/chromium"
WIDTH, HEIGHT = 1280, 800
_QUIET = ("--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync")
_TASKS = ("answer-file", "keep-serving", "mend-a-script", "read-the-screen", "sign-the-guestbook", "tidy-the-list")
_LONGEST_SEC = 240


def main() -> None:
    subprocess.run(["sh", "scripts/build-page.sh"], cwd=ROOT, check=True)
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        service, address = _start(Path(home))
        try:
            with httpx.Client(base_url=address, trust_env=False, timeout=30) as client:
                shown = _fill(client)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_QUIET))
                for theme in ("light", "dark"):
                    _shoot(browser, address, theme, shown)
                browser.close()
        finally:
            service.terminate()
            service.wait()


def _start(home: Path) -> tuple[subprocess.Popen[str], str]:
    environment = {**os.environ, "SEATRIAL_HOME": str(home)}
    program = [str(Path(sys.executable).with_name("seatrial")), "up", "--port", "0", "-n", "3"]
    service = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True, cwd=home)
    assert service.stdout is not None
    found = re.search(r"is up: (http://\S+)", service.stdout.readline())
    if found is None:
        sys.exit("The service did not start.")
    return service, found[1]


def _fill(client: httpx.Client) -> dict[str, str]:
    """Jobs to look at; the addresses of the pages to show."""
    client.post("/api/v1/samples").raise_for_status()
    terminus = {"name": "terminus-2", "model": "scripted/solve-read-the-screen"}
    resigned = {"name": "terminus-2", "model": "scripted/give-up"}
    agents: list[dict[str, Any]] = [{"name": "oracle"}, {"name": "nop"}]
    nightly = _run(client, name="nightly", tasks=_TASKS, agents=agents, attempts=3)
    first = _run(client, name="Monday", tasks=["read-the-screen"], agents=[terminus], attempts=3)
    second = _run(client, name="Tuesday", tasks=["read-the-screen"], agents=[resigned], attempts=3)
    return {
        "job": f"/jobs/{nightly}",
        "trial": f"/trials/{_first_trial(client, first)}?step=3",
        "launch": "/launch",
        "compare": f"/compare?jobs={nightly}",
        "sides": f"/compare?left={_first_trial(client, first)}&right={_first_trial(client, second)}",
    }


def _first_trial(client: httpx.Client, job: int) -> int:
    return int(client.get(f"/api/v1/jobs/{job}/trials").json()["items"][0]["id"])


def _run(client: httpx.Client, **wish: Any) -> int:
    job = int(client.post("/api/v1/jobs", json=wish).raise_for_status().json()["id"])
    deadline = time.monotonic() + _LONGEST_SEC
    while client.get(f"/api/v1/jobs/{job}").json()["ended_at"] is None:
        if time.monotonic() > deadline:
            sys.exit(f"Job {job} did not end.")
        time.sleep(0.5)
    return job


def _shoot(browser: Browser, address: str, theme: Literal["light", "dark"], shown: dict[str, str]) -> None:
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme)
    page = context.new_page()
    for name, path in shown.items():
        page.goto(address + path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        if name == "launch":
            _choose(page)
        page.wait_for_timeout(2500)
        page.screenshot(path=IMAGES / f"{name}-{theme}.png")
    context.close()


def _choose(page: Page) -> None:
    """Something for the summary to sum up."""
    for task in _TASKS[:4]:
        page.get_by_role("group", name="tasks", exact=True).get_by_text(task, exact=True).click()
    page.get_by_role("group", name="agents", exact=True).get_by_text("nop", exact=True).click()
    page.get_by_label("Attempts at each task").fill("5")
    page.evaluate("() => document.activeElement.blur()")


if __name__ == "__main__":
    main()
