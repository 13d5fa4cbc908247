"""A tenant chooses a sandbox that is not ours, and so steps round our isolation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from seatrial.domain.token import Role
from seatrial.engine.jobs.admission import Admission
from seatrial.errors import InvalidInput
from tests.attacks.tenant.doors import Doors, doors_open
from tests.contracts.http.server import task_zip

FOREIGN = (
    "harbor:docker",
    "harbor:modal",
    "harbor:daytona",
    "harbor:e2b",
    "tests.e2e.agents:Painter",
    "os:system",
    "Harbor:docker",
    "harbor:Docker",
    " oci",
    "oci:x",
)
COMPOSE = "services:\n  main:\n    build: .\n  db:\n    image: postgres\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def doors(tmp_path_factory: pytest.TempPathFactory) -> Any:
    async with doors_open(tmp_path_factory.mktemp("home"), Role.ADMIN) as opened:
        yield opened


@pytest.mark.parametrize("sandbox", FOREIGN)
async def test_no_caller_chooses_a_foreign_sandbox(doors: Doors, sandbox: str) -> None:
    answer = await doors.job(422, sandbox=sandbox)
    assert answer["error"]["field"] == "sandbox"


@pytest.mark.parametrize("sandbox", ["auto", "oci", "docker"])
async def test_ours_can_be_chosen(doors: Doors, sandbox: str) -> None:
    await doors.job(sandbox=sandbox)


async def test_a_task_of_several_services_is_no_way_round(doors: Doors) -> None:
    """Such tasks run in Harbor's own Docker environment, whatever sandbox the job names."""
    archive = task_zip(environment__docker_minus_compose_dot_yaml=COMPOSE)
    for answer in (await doors.runner(400, archive=_named(archive)),):
        assert "several services" in answer["detail"]


def _named(archive: bytes) -> bytes:
    """``task_zip`` has no word for a hyphen."""
    from io import BytesIO
    from zipfile import ZipFile

    made = BytesIO()
    with ZipFile(BytesIO(archive)) as old, ZipFile(made, "w") as new:
        for entry in old.namelist():
            new.writestr(entry.replace("_minus_", "-"), old.read(entry))
    return made.getvalue()


async def test_the_operator_can_offer_one(tmp_path: Path) -> None:
    async with doors_open(tmp_path, Role.USER, allowed_sandboxes="harbor:daytona, harbor:modal") as doors:
        await doors.job(sandbox="harbor:modal")
        await doors.job(422, sandbox="harbor:docker")


async def test_the_operators_default_is_offered(tmp_path: Path) -> None:
    async with doors_open(tmp_path, Role.USER, sandbox="harbor:modal") as doors:
        await doors.job()
        await doors.job(422, sandbox="harbor:daytona")


def test_at_the_machine_all_can_be_chosen() -> None:
    from seatrial.domain.job import AgentSpec, JobSpec
    from seatrial.domain.task import TaskRef

    agent = AgentSpec(name="mini-swe-agent", model="openai/x", options={"config_file": "/etc/hostname"})
    spec = JobSpec(tasks=(TaskRef(name="t", digest="d"),), agents=(agent,), sandbox="harbor:docker")
    Admission(at_the_machine=True).check(spec)
    with pytest.raises(InvalidInput):
        Admission().check(spec)
