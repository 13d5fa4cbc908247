"""A service in containers, as a client of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.deploy.conftest import Machine
from tests.waiting import until

_LONG_SEC = 480.0
"""A first trial may have to make a Debian."""


@dataclass(frozen=True)
class Talk:
    machine: Machine
    address: str
    token: str = ""

    def status(self, path: str) -> int:
        return int(self.machine.ask(f"{self.address}{path}", self.token).split(" ", 1)[0])

    def text(self, path: str, body: object = None) -> str:
        given = "" if body is None else json.dumps(body)
        status, _, text = self.machine.ask(f"{self.address}{path}", self.token, given).partition(" ")
        assert status.startswith("2"), (status, text)
        return text

    def json(self, path: str, body: object = None) -> Any:
        return json.loads(self.text(path, body))

    def run(self, job: dict[str, Any]) -> list[dict[str, Any]]:
        """The trials of a job that has ended."""
        number = self.json("/api/v1/jobs", job)["id"]
        until(lambda: self.json(f"/api/v1/jobs/{number}")["status"] == "completed", "the job ends", _LONG_SEC)
        ids = [trial["id"] for trial in self.json(f"/api/v1/jobs/{number}/trials")["items"]]
        return [self.json(f"/api/v1/trials/{trial}") for trial in ids]
