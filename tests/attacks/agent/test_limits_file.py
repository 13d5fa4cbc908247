"""The file with an agent's limits is this machine's. An agent, as root, reads it, cannot change it, and learns nothing
of the machine from it."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest

from seatrial.agents.limits import PLACE
from seatrial.sandboxes.oci.machine import Machine
from tests.trials import Workplace
from tests.workplace_fixture import OCI, Make

oci = pytest.mark.parametrize("workplace", [OCI], indirect=True)

CHANGES = {
    "it is overwritten": f"echo x > {PLACE}",
    "it is removed": f"rm -f {PLACE}",
    "one is added beside it": f"touch {PLACE.parent}/new",
    "its mode is changed": f"chmod 777 {PLACE}",
    "it is mounted writable": f"mount -o remount,rw,bind {PLACE.parent}",
    "it is unmounted": f"umount -l {PLACE.parent}",
    "its place is moved": f"mv {PLACE.parent} /opt/old",
    "its place is removed": f"rm -rf {PLACE.parent}",
}


@oci
async def test_no_change_by_the_agent_is_taken(make: Make) -> None:
    sandbox = await make()
    await sandbox.post(str(PLACE), b'{"calls_left": 9}')
    worked = [name for name, change in CHANGES.items() if (await sandbox.exec(change)).return_code == 0]
    assert worked == []
    await sandbox.post(str(PLACE), b'{"calls_left": 8}')
    assert json.loads((await sandbox.exec(f"cat {PLACE}")).stdout or "") == {"calls_left": 8}


@oci
async def test_the_mount_names_nothing_of_this_machine(make: Make, workplace: Workplace) -> None:
    sandbox = await make()
    await sandbox.post(str(PLACE), b"{}")
    [line] = ((await sandbox.exec(f"grep ' {PLACE.parent} ' /proc/self/mountinfo")).stdout or "").splitlines()
    fields = line.split()
    assert re.fullmatch("/[0-9a-f]{12}", fields[3]), "a name that was made up for this sandbox"
    assert str(workplace.cache) not in line and {"ro", "nosuid", "nodev"} <= set(fields[5].split(","))
    assert (await sandbox.exec(f"ls -A {PLACE.parent}")).stdout == f"{PLACE.name}\n"


@oci
@pytest.mark.parametrize("place", ["/tests", "/logs/verifier", "/etc"])
async def test_a_link_at_its_place_is_not_mounted_over(make: Make, place: str) -> None:
    sandbox = await make()
    await sandbox.exec(f"mkdir -p /opt/seatrial && ln -s {place} {PLACE.parent}")
    mounts = (await sandbox.exec("wc -l < /proc/mounts")).stdout
    with suppress(OSError):  # written to where the link leads, as anything that is uploaded, or refused
        await sandbox.post(str(PLACE), b"{}")
    assert (await sandbox.exec("wc -l < /proc/mounts")).stdout == mounts
    await sandbox.begin_grading()
    assert (await sandbox.exec("touch /tests/x /logs/verifier/reward.txt /etc/x")).return_code == 0


async def test_every_user_reads_it_anew_on_each_sandbox(make: Make) -> None:
    """The benign twin."""
    sandbox = await make()
    for left in (9, 8, 7):
        await sandbox.post(str(PLACE), json.dumps({"calls_left": left}).encode())
        for user in ("root", "agent"):
            told = await sandbox.exec(f"cat {PLACE}", user=user)
            assert json.loads(told.stdout or "") == {"calls_left": left}
    assert (await sandbox.exec(f"echo x > {PLACE}", user="agent")).return_code != 0


@oci
async def test_nothing_of_it_stays(make: Make, workplace: Workplace) -> None:
    """A control of the machine, not of the sandbox."""
    sandbox = await make()
    await sandbox.post(str(PLACE), b"{}")
    await sandbox.stop(delete=True)
    machine = Machine.shared(workplace.cache)
    assert await machine.mounts.start(_boards, workplace.cache) == []
    assert list((workplace.cache / "notices").iterdir()) == [], "on the machine itself it never was"


def _boards(cache: Path) -> list[str]:
    return [path.name for path in (cache / "notices").iterdir()]
