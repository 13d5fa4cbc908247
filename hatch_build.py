"""The wheel carries the built page, so that users need no Node: it is built here where it is missing."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # `make setup` builds it by itself, and says so
            return
        page = Path(self.root, "src", "seatrial", "page")
        script = Path(self.root, "scripts", "build-page.sh")
        if script.exists():
            subprocess.run(["sh", str(script)], check=True)
        if not (page / "index.html").exists():
            raise RuntimeError("The page is not built, and this source has nothing to build it with.")
        build_data["artifacts"].append("src/seatrial/page/")
