"""Has a test run begin with the files that take longest. ``tests/conftest.py`` calls this.

``pytest --dist loadfile`` hands out whole files, with ``--no-loadscope-reorder`` in this order; else those with most
tests come first. One of two minutes that comes last keeps every other process waiting. Whatever is not named here takes
seconds, and its place does not matter.
"""

from __future__ import annotations

import pytest

LONGEST = (
    "tests/browser/test_flow.py",
    "tests/verifiers/test_generation_04.py",
    "tests/e2e/test_up.py",
    "tests/verifiers/test_generation_03.py",
    "tests/attacks/agent/test_forged_rewards.py",
    "tests/faults/test_workers.py",
    "tests/contracts/sandbox/test_limits.py",
    "tests/contracts/sandbox/test_exec.py",
    "tests/e2e/test_mini_swe_agent.py",
    "tests/contracts/sandbox/test_grading.py",
    "tests/contracts/sandbox/test_network.py",
    "tests/faults/test_abuse.py",
    "tests/integration/images/test_builds.py",
    "tests/integration/images/test_hostile_builds.py",
    "tests/e2e/test_terminus_scripted.py",
    "tests/e2e/test_server.py",
    "tests/e2e/test_records.py",
    "tests/e2e/test_interruptions.py",
    "tests/faults/test_06_store_away.py",
    "tests/faults/test_disk_full.py",
    "tests/attacks/agent/test_own_processes.py",
    "tests/attacks/task_author/test_dockerfile_confinement.py",
    "tests/attacks/agent/test_removal.py",
)
"""By what they took in ``make test``, beside each other on a busy machine; whatever is not here took less."""


def order_longest_first(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(LONGEST)))
