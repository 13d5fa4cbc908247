"""A person with a browser: opens addresses of the service, and whatever goes wrong meanwhile is remembered.

Nothing on our pages may write an error to the console, throw, open a dialog or ask another server for anything; a test
that provokes an answer such as 404 says so through ``expected``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Error, Page, Request, Response

from tests.waiting import LIMIT_SEC

Theme = Literal["light", "dark"]
WIDE, NARROW = 1280, 400
_COMPLAINTS = ("error", "warning")
_OF_THIS_MACHINE = ("ERR_NETWORK_CHANGED",)
"""Chromium gives up on what it is loading whenever a network interface comes or goes, as those of sandboxes do."""
_PARTS = ("document", "script", "stylesheet")
"""What a page is made of. It asks again for data that it did not get, but not for these."""


@dataclass
class Visitor:
    """Who visits, what they look at, and what went wrong."""

    page: Page
    base: str
    trouble: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    """Regular expressions of trouble that the test itself causes."""
    scripts: dict[str, int] = field(default_factory=dict)
    """What was loaded as a script, with the bytes that came over the wire."""

    dropped: list[str] = field(default_factory=list)
    """Addresses of parts of pages that Chromium gave up on."""

    def go(self, path: str) -> None:
        self._load(lambda: self.page.goto(self.base + path))

    def reload(self) -> None:
        self._load(self.page.reload)

    def _load(self, load: Callable[[], object]) -> None:
        """Once more for as long as parts of the page are dropped."""
        while True:
            before = len(self.dropped)
            try:
                load()
            except Error as error:
                if not _is_of_this_machine(str(error)):
                    raise
                continue
            if len(self.dropped) == before:
                return

    def trouble_left(self) -> list[str]:
        forgiven = (*self.expected, *_OF_THIS_MACHINE, *map(re.escape, self.dropped))
        return [one for one in self.trouble if not any(re.search(pattern, one) for pattern in forgiven)]

    def hear(self, message: ConsoleMessage) -> None:
        if message.type in _COMPLAINTS:
            where = message.location.get("url", "").removeprefix(self.base)
            self.trouble.append(f"console {message.type}: {message.text} ({where})")

    def thrown(self, error: Error) -> None:
        self.trouble.append(f"thrown: {error}")

    def asked(self, dialog: Dialog) -> None:
        """Dialogs are never ours, except where a test takes them itself."""
        self.trouble.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def requested(self, request: Request) -> None:
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.trouble.append(f"foreign request: {request.url}")

    def failed(self, request: Request) -> None:
        if request.resource_type in _PARTS and _is_of_this_machine(request.failure or ""):
            self.dropped.append(request.url)

    def received(self, response: Response) -> None:
        if response.request.resource_type == "script" and response.ok:
            self.scripts[response.url.removeprefix(self.base)] = int(response.headers.get("content-length", "0"))


def _is_of_this_machine(trouble: str) -> bool:
    return any(sign in trouble for sign in _OF_THIS_MACHINE)


def confirm(page: Page, button: str, verb: str) -> None:
    """Presses a button that asks first, and says yes."""
    page.get_by_role("button", name=button, exact=True).click()
    page.get_by_role("dialog", name=verb).get_by_role("button", name=verb).click()


@contextmanager
def visiting(
    browser: Browser, base: str, *, theme: Theme = "light", width: int = WIDE, bypass_csp: bool = False
) -> Iterator[Visitor]:
    """A fresh visitor: no cookies, nothing cached. Trouble that nobody expected fails the test at the end."""
    context = browser.new_context(
        viewport={"width": width, "height": 860}, color_scheme=theme, bypass_csp=bypass_csp, reduced_motion="reduce"
    )
    context.set_default_timeout(LIMIT_SEC * 1000)
    page = context.new_page()
    visitor = Visitor(page, base)
    page.on("console", visitor.hear)
    page.on("pageerror", visitor.thrown)
    page.on("dialog", visitor.asked)
    page.on("request", visitor.requested)
    page.on("requestfailed", visitor.failed)
    page.on("response", visitor.received)
    try:
        yield visitor
    finally:
        context.close()
    assert not visitor.trouble_left(), "\n".join(visitor.trouble_left())
