"""Ten small tasks in both formats, whose instruction says which commands to run, and what their tests must then say.

The scripted model ``shell`` runs exactly those commands, so a task is solved or not by what is written here. All start
from the image that the other tests have in their cache already.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.task_files import DOCKERFILE, write_task

TASK_YAML = """instruction: |-
{instruction}
difficulty: {difficulty}
category: {category}
parser_name: pytest
max_agent_timeout_sec: 240.0
max_test_timeout_sec: 240.0
"""
RUN_TESTS = """#!/bin/bash
bash "$TEST_DIR/check.sh" && first=PASSED || first=FAILED
echo "=========================== short test summary info ============================"
echo "$first tests/test_outputs.py::test_checked"
echo "PASSED tests/test_outputs.py::test_always"
"""


@dataclass(frozen=True)
class SmallTask:
    name: str
    commands: tuple[str, ...]
    check: str
    """Shell that succeeds where the task is solved."""
    score: float
    """What every rollout of it must be given."""
    old: bool = False
    """In the format of Terminal-Bench 1."""

    def write(self, folder: Path) -> Path:
        block = "\n".join(["Run this:", "```sh", *self.commands, "```"])
        if self.old:
            return self._write_old(folder, block)
        verdict = f"if ( {self.check} ); then echo 1; else echo 0; fi > /logs/verifier/reward.txt"
        root = write_task(folder, self.name, test=verdict, category="new", agent_timeout=240.0, verifier_timeout=240.0)
        (root / "instruction.md").write_text(f"{block}\n")
        return root

    def _write_old(self, folder: Path, block: str) -> Path:
        root = folder / self.name
        indented = "\n".join(f"  {line}" for line in block.splitlines())
        files = {
            "task.yaml": TASK_YAML.format(instruction=indented, category="old", difficulty="medium"),
            "Dockerfile": DOCKERFILE,
            "run-tests.sh": RUN_TESTS,
            "tests/check.sh": f"{self.check}\n",
            "solution.sh": "true\n",
        }
        for place, text in files.items():
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).write_text(text)
        return root


ANSWERED = '[ "$(cat /app/answer.txt)" = 42 ]'
SEEN_TWICE = '[ "$(wc -l < /app/visits)" -ge 2 ]'

TEN = (
    SmallTask("a-answer", ("echo 42 > /app/answer.txt",), ANSWERED, 1.0),
    SmallTask("b-wrong-answer", ("echo 41 > /app/answer.txt",), ANSWERED, 0.0),
    SmallTask("c-answer-old", ("echo 42 > /app/answer.txt",), ANSWERED, 1.0, old=True),
    SmallTask("d-wrong-answer-old", ("echo 41 > /app/answer.txt",), ANSWERED, 0.0, old=True),
    SmallTask("e-one-visit", ("echo visit >> /app/visits",), SEEN_TWICE, 0.0),
    SmallTask("f-two-visits", ("echo visit >> /app/visits", "echo visit >> /app/visits"), SEEN_TWICE, 1.0),
    SmallTask("g-one-visit-old", ("echo visit >> /app/visits",), SEEN_TWICE, 0.0, old=True),
    SmallTask(
        "h-lasting-directory-old",
        ("mkdir -p /app/a/b", "cd /app/a/b", "pwd > here"),
        "grep -qx /app/a/b /app/a/b/here",
        1.0,
        True,
    ),
    SmallTask("i-much-output", ("seq 1 100000", "echo done > /app/done"), "[ -s /app/done ]", 1.0),
    SmallTask("j-nothing", ("true",), "[ -e /app/never ]", 0.0),
)
"""``e`` and ``g`` would pass in a second rollout that saw what the first one left; ``f`` shows that they could."""


def write_ten(folder: Path) -> Path:
    for task in TEN:
        task.write(folder)
    return folder


def write_faulty(folder: Path) -> Path:
    """One task whose grader gives no verdict, one without an image that could be built, and one that is in order."""
    SmallTask("good", ("echo 42 > /app/answer.txt",), ANSWERED, 1.0).write(folder)
    silent = SmallTask("silent-grader", ("true",), "true", 0.0).write(folder)
    (silent / "tests" / "test.sh").write_text("#!/bin/bash\ntrue # and no reward.txt\n")
    broken = SmallTask("unbuildable", ("true",), "true", 0.0).write(folder)
    (broken / "environment" / "Dockerfile").write_text(f"{DOCKERFILE}RUN exit 3\n")
    return folder


def give_uv(task: Path, base: str = "debian:bookworm-slim", packages: str = "python3") -> None:
    """Verifiers installs its harnesses into the container with uv: here it is in the image, with a Python and the
    certificates that this machine trusts."""
    shutil.copy(Path(sys.executable).with_name("uv"), task / "uv")
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", task / "certificates.crt")
    (task / "Dockerfile").write_text(
        f"FROM {base}\n"
        f"RUN apt-get update && apt-get install -y --no-install-recommends {packages} && rm -rf /var/lib/apt/lists/*\n"
        "COPY uv /usr/local/bin/uv\n"
        "COPY certificates.crt /etc/ssl/certs/ca-certificates.crt\n"
        "ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt\n"
        "WORKDIR /app\n"
    )
