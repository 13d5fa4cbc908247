"""Tasks as the archives that a person would drop on the page."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tests.task_files import write_task

TELLS = ("starts", "ends")
"""The names of the tests that a talking task's verifier reports."""

_REPORT = {
    "results": {
        "tests": [
            {"name": TELLS[0], "status": "passed", "duration": 12},
            {"name": TELLS[1], "status": "PLACE", "duration": 34, "message": "expected /app/answer.txt to hold 42"},
        ]
    }
}


def talking_task(folder: Path, name: str, commands: str, *, instruction: str = "") -> Path:
    """A task for ``scripted/shell``: the model types the commands; the verifier tells two tests."""
    report = json.dumps(_REPORT).replace('"PLACE"', "\"'$status'\"")
    test = (
        'if [ "$(cat /app/answer.txt)" = 42 ]; then reward=1 status=passed; else reward=0 status=failed; fi\n'
        f"echo '{report}' > /logs/verifier/ctrf.json\necho $reward > /logs/verifier/reward.txt"
    )
    root = write_task(folder, name, test=test, agent_timeout=600.0)
    (root / "instruction.md").write_text(instruction or f"Do what is asked.\n\n```sh\n{commands}\n```\n")
    return root


def packed(root: Path, changes: Mapping[str, str] | None = None) -> Path:
    """As a ZIP beside the folder, with some of its files replaced."""
    for name, text in (changes or {}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    archive = root.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w") as packing:
        for file in sorted(root.rglob("*")):
            if file.is_file():
                packing.write(file, file.relative_to(root.parent))
    return archive
