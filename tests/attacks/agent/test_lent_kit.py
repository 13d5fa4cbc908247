"""The terminal kit is a directory of this machine that sandboxes see. No agent can change it, nor use it to mislead."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from seatrial.sandboxes.sandbox import Sandbox
from seatrial.sandboxes.terminal.terminal import KIT_DIR, TerminalKit
from tests.trials import Workplace
from tests.workplace_fixture import OCI, Make

pytestmark = pytest.mark.parametrize("workplace", [OCI], indirect=True)

CHANGES = {
    "a file is overwritten": f"echo x > {KIT_DIR}/bin/tmux",
    "a file is removed": f"rm {KIT_DIR}/bin/tmux",
    "a file is added": f"touch {KIT_DIR}/bin/new",
    "a mode is changed": f"chmod 4777 {KIT_DIR}/bin/tmux",
    "an owner is changed": f"chown 1234 {KIT_DIR}/bin/tmux",
    "a time is changed": f"touch -d @1 {KIT_DIR}/bin/tmux",
    "it is mounted writable": f"mount -o remount,rw,bind {KIT_DIR}",
    "it is unmounted": f"umount -l {KIT_DIR}",
    "a link leads to the same file": f"ln {KIT_DIR}/bin/tmux /app/tmux",
    "it is replaced": f"mv {KIT_DIR} /opt/old",
    "its place is removed": f"rm -rf {KIT_DIR}",
}


def digest(directory: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        status = path.lstat()
        found.update(f"{path} {status.st_mode} {status.st_uid} {status.st_nlink} {status.st_mtime_ns}\n".encode())
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


async def run(sandbox: Sandbox, command: str) -> str:
    result = await sandbox.exec(command)
    assert result.return_code == 0, f"{command}: {result.stderr or result.stdout}"
    return result.stdout or ""


async def test_no_change_reaches_the_machine(make: Make, workplace: Workplace) -> None:
    kit = TerminalKit.prepare(workplace.cache).directory
    before = digest(kit)
    sandbox = await make()
    await run(sandbox, "tmux -V")
    worked = [name for name, change in CHANGES.items() if (await sandbox.exec(change)).return_code == 0]
    assert worked == []
    assert digest(kit) == before
    # what is beside the kit on this machine is not beside it in the sandbox
    assert await run(sandbox, f"ls -A {KIT_DIR}/.. && ls -A {KIT_DIR}/../..") == "terminal\nseatrial\n"
    # the benign twin
    assert (await run(sandbox, "tmux new-session -d -s main bash && tmux ls")).startswith("main:")
    await sandbox.begin_grading()
    await run(sandbox, f"{KIT_DIR}/bin/tmux -V && {KIT_DIR}/bin/bash -c true")
    assert sandbox.facts.suspicions == ()
    await sandbox.stop(delete=True)
    assert digest(kit) == before


async def test_it_is_lent_and_not_copied(make: Make) -> None:
    sandbox = await make()
    await run(sandbox, "tmux -V")
    options = (await run(sandbox, f"grep ' {KIT_DIR} ' /proc/mounts")).split()[3].split(",")
    assert {"ro", "nosuid", "nodev"} <= set(options)


@pytest.mark.parametrize("place", ["/tests", "/logs/verifier", "/etc", "/app/empty"])
async def test_a_link_at_its_place_is_not_followed(make: Make, place: str) -> None:
    """A mount over ``/tests`` would have kept the verifier from its tests."""
    sandbox = await make()
    await run(sandbox, f"mkdir -p /app/empty /opt/seatrial && ln -s {place} {KIT_DIR}")
    mounts = await run(sandbox, "wc -l < /proc/mounts")
    try:
        await sandbox.exec("tmux -V")  # copied to where the link leads, as anything that is uploaded, or refused
    except OSError:
        assert place != "/app/empty"
    assert await run(sandbox, "wc -l < /proc/mounts") == mounts
    await sandbox.begin_grading()
    await run(sandbox, "touch /tests/x /logs/verifier/reward.txt /etc/x")


async def test_a_place_moved_away_does_not_hinder_grading(make: Make) -> None:
    sandbox = await make()
    await run(sandbox, "tmux -V")
    await run(sandbox, f"mv /opt/seatrial /opt/moved && mkdir /opt/seatrial && ln -s /tests {KIT_DIR}")
    await sandbox.begin_grading()
    await run(sandbox, "touch /tests/x && bash -c true")


async def test_a_privileged_sandbox_gets_a_copy(make: Make, workplace: Workplace) -> None:
    """It could mount the kit writable."""
    kit = TerminalKit.prepare(workplace.cache).directory
    before = digest(kit)
    compose = "services:\n  main:\n    build: .\n    privileged: true\n"
    sandbox = await make(compose=compose, options={"allow_privileged": True})
    await run(sandbox, "tmux -V")
    await sandbox.exec(f"mount -o remount,rw,bind {KIT_DIR}; echo changed > {KIT_DIR}/bin/tmux")
    assert digest(kit) == before
