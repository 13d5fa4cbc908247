"""Has a test run begin with the files that take longest. ``tests/conftest.py`` calls this.

``pytest --dist loadfile`` hands out whole files, with ``--no-loadscope-reorder`` in this order; else those with most
tests come first. One of two minutes that comes last keeps every other process waiting. Whatever is not named here takes
seconds, and its place does not matter.
"""

from __future__ import annotations

import pytest

LONGEST = (
    "tests/verifiers/test_rollouts.py",
    "tests/browser/test_flow.py",
    "tests/integration/api/test_openapi.py",
    "tests/browser/test_everyday.py",
    "tests/faults/test_workers.py",
    "tests/e2e/test_up.py",
    "tests/integration/test_load.py",
    "tests/verifiers/test_generation_04.py",
    "tests/integration/images/test_hostile_builds.py",
    "tests/contracts/sandbox/test_grading.py",
    "tests/browser/test_accessible.py",
    "tests/attacks/agent/test_forged_rewards.py",
    "tests/attacks/task_author/test_dockerfile_confinement.py",
    "tests/e2e/test_server.py",
    "tests/faults/test_06_store_away.py",
    "tests/integration/images/test_builds.py",
    "tests/integration/client/test_interruptions.py",
    "tests/browser/test_hostile.py",
    "tests/e2e/test_interruptions.py",
    "tests/verifiers/test_export.py",
    "tests/faults/test_cheats.py",
    "tests/integration/test_agent_kits.py",
    "tests/browser/test_shell.py",
    "tests/integration/engine/test_docker.py",
    "tests/attacks/agent/test_agent_kit.py",
    "tests/attacks/result_reader/test_terminal.py",
    "tests/integration/images/test_images_command.py",
    "tests/faults/test_abuse.py",
    "tests/contracts/sandbox/test_exec.py",
    "tests/browser/test_triage.py",
    "tests/attacks/agent/test_storage_limit.py",
    "tests/verifiers/test_tasks_found.py",
    "tests/faults/test_three_machines.py",
    "tests/contracts/sandbox/test_network.py",
    "tests/e2e/test_custom_agent.py",
    "tests/attacks/agent/test_removal.py",
    "tests/e2e/test_limits_told.py",
    "tests/contracts/sandbox/test_time.py",
    "tests/integration/client/test_guide.py",
    "tests/browser/test_pictures.py",
)
"""By what they took in ``make test``, beside each other on a busy machine; whatever is not here took less."""


def order_longest_first(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(LONGEST)))
