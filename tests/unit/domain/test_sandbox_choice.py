"""Which sandbox a trial gets."""

from __future__ import annotations

import pytest

from seatrial.domain.sandbox_choice import chosen_sandbox
from seatrial.domain.task import Task, TaskFormat


def task(*services: str) -> Task:
    return Task(digest=f"sha256:{1:064x}", name="one", format=TaskFormat.HARBOR, instruction="Do.", services=services)


@pytest.mark.parametrize(
    ("wanted", "services", "working", "chosen"),
    [
        ("auto", (), ("oci", "docker"), "oci"),
        ("auto", (), ("docker",), "docker"),
        ("auto", (), (), None),
        ("docker", (), ("oci",), "docker"),
        ("harbor:modal", (), ("oci",), "harbor:modal"),
        ("auto", ("db",), ("oci",), "harbor:docker"),
        ("oci", ("db",), ("oci",), "harbor:docker"),
        ("harbor:modal", ("db",), ("oci",), "harbor:modal"),
    ],
)
def test_it_follows_the_job_the_task_and_the_machine(
    wanted: str, services: tuple[str, ...], working: tuple[str, ...], chosen: str | None
) -> None:
    assert chosen_sandbox(wanted, task(*services), working) == chosen
