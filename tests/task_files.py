"""Small tasks written for one test. Their image is the one that every other test task starts from."""

from __future__ import annotations

from pathlib import Path

DOCKERFILE = "FROM debian:bookworm-slim\nWORKDIR /app\n"
SOLVE = "echo 42 > /app/answer.txt"
TEST = (
    'if [ "$(cat /app/answer.txt)" = 42 ]; then reward=1; else reward=0; fi\necho $reward > /logs/verifier/reward.txt'
)

_TASK = """schema_version = "1.4"
[task]
name = "tests/{name}"
[metadata]
category = "{category}"
difficulty = "{difficulty}"
tags = ["{tag}"]
[agent]
timeout_sec = {agent_timeout}
[verifier]
timeout_sec = {verifier_timeout}
[environment]
build_timeout_sec = 600.0
cpus = 1
memory_mb = 512
network_mode = "no-network"
{more}
"""


def write_task(
    folder: Path,
    name: str,
    *,
    solve: str = SOLVE,
    test: str = TEST,
    dockerfile: str = DOCKERFILE,
    agent_timeout: float = 300.0,
    verifier_timeout: float = 300.0,
    category: str = "tests",
    difficulty: str = "easy",
    tag: str = "small",
    more: str = "",
) -> Path:
    """A task in ``folder/name``; ``more`` is appended to its ``task.toml``. Its limits only end what would hang."""
    root = folder / name
    files = {
        "task.toml": _TASK.format(
            name=name,
            category=category,
            difficulty=difficulty,
            tag=tag,
            agent_timeout=agent_timeout,
            verifier_timeout=verifier_timeout,
            more=more,
        ),
        "instruction.md": "Write 42 into /app/answer.txt.\n",
        "environment/Dockerfile": dockerfile,
        "solution/solve.sh": f"#!/bin/bash\n{solve}\n",
        "tests/test.sh": f"#!/bin/bash\n{test}\n",
    }
    for place, text in files.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text)
    return root
