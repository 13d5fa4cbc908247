"""Things to look at, made over HTTP: jobs of real trials, so that pages have something to show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.browser.archives import packed
from tests.waiting import until

_LONGEST_SEC = 240


@dataclass(frozen=True)
class Setting:
    client: httpx.Client

    def upload(self, *roots: Path) -> list[str]:
        """Digests of the tasks in these folders."""
        files = [("files", (root.name + ".zip", packed(root).read_bytes())) for root in roots]
        answer = self.client.post("/api/v1/tasks", files=files).raise_for_status().json()
        return [task["digest"] for item in answer["items"] for task in item["tasks"]]

    def samples(self) -> None:
        self.client.post("/api/v1/samples").raise_for_status()

    def launch(self, tasks: list[str], agent: str = "oracle", model: str | None = None, **more: Any) -> int:
        body = {"tasks": tasks, "agents": [{"name": agent, "model": model}], **more}
        return int(self.client.post("/api/v1/jobs", json=body).raise_for_status().json()["id"])

    def run(self, tasks: list[str], agent: str = "oracle", model: str | None = None, **more: Any) -> int:
        """Launched, and ended."""
        job = self.launch(tasks, agent, model, **more)
        path = f"/api/v1/jobs/{job}"
        until(lambda: self.client.get(path).json()["ended_at"] is not None, f"the end of job {job}", _LONGEST_SEC)
        return job

    def trials(self, job: int) -> list[dict[str, Any]]:
        found = self.client.get(f"/api/v1/jobs/{job}/trials", params={"limit": 500}).raise_for_status().json()
        return list(found["items"])

    def file(self, trial: int, path: str) -> bytes:
        return self.client.get(f"/api/v1/trials/{trial}/files/{path}").raise_for_status().content

    def jobs(self) -> list[dict[str, Any]]:
        found = self.client.get("/api/v1/jobs", params={"limit": 500}).raise_for_status().json()
        assert found["next"] is None
        return list(found["items"])
