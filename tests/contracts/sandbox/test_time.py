"""Time: what a timeout or a cancellation ends, and what lives on between commands."""

from __future__ import annotations

import asyncio
import time

import pytest
from harbor.environments.base import BaseEnvironment

from tests.contracts.sandbox.conftest import MakeSandbox

# A child, a child in a session of its own, and a grandchild in one. Each leaves a file two seconds later.
FAMILY = """
(sleep 2; touch {place}/child) >/dev/null 2>&1 &
setsid bash -c 'sleep 2; touch {place}/session' >/dev/null 2>&1 &
bash -c 'setsid bash -c "sleep 2; touch {place}/grandchild" & wait' >/dev/null 2>&1 &
touch {place}/started
"""
# One that nobody is the parent of any more: a service, which a task may need, and which therefore stays.
SERVICE = """
(setsid bash -c 'sleep 2; touch {place}/service' >/dev/null 2>&1 &)
"""


async def _names(sandbox: BaseEnvironment, place: str) -> list[str]:
    return ((await sandbox.exec(f"ls {place}")).stdout or "").split()


async def test_timeout_ends_the_call_in_time(sandbox: BaseEnvironment) -> None:
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
        await sandbox.exec("sleep 60", timeout_sec=1)
    assert time.monotonic() - began < 15
    assert (await sandbox.exec("echo usable")).stdout == "usable\n"


async def test_timeout_kills_what_the_command_started(sandbox: BaseEnvironment) -> None:
    place = "/tmp/timed-out"
    await sandbox.exec(f"rm -rf {place}; mkdir -p {place}")
    with pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec(FAMILY.format(place=place) + "sleep 60", timeout_sec=1)
    await asyncio.sleep(2.5)
    assert await _names(sandbox, place) == ["started"]


async def test_late_answer_does_not_count(sandbox: BaseEnvironment) -> None:
    await sandbox.exec("rm -f /tmp/answer")
    with pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec("trap '' TERM INT HUP; sleep 1.2; echo 42 > /tmp/answer; sleep 60", timeout_sec=1)
    await asyncio.sleep(1)
    assert (await sandbox.exec("test -e /tmp/answer")).return_code == 1


async def test_cancelling_kills_what_the_command_started(sandbox: BaseEnvironment) -> None:
    place = "/tmp/cancelled"
    await sandbox.exec(f"rm -rf {place}; mkdir -p {place}")
    running = asyncio.create_task(sandbox.exec(FAMILY.format(place=place) + "sleep 60"))
    while "started" not in await _names(sandbox, place):
        await asyncio.sleep(0.1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(2.5)
    assert await _names(sandbox, place) == ["started"]
    assert (await sandbox.exec("echo usable")).stdout == "usable\n"


async def test_background_processes_live_on(sandbox: BaseEnvironment) -> None:
    """The twin of the tests above: without a timeout, the same family finishes its work."""
    place = "/tmp/lives-on"
    await sandbox.exec(f"rm -rf {place}; mkdir -p {place}")
    await sandbox.exec((FAMILY + SERVICE).format(place=place), timeout_sec=20)
    await asyncio.sleep(2.5)
    assert await _names(sandbox, place) == ["child", "grandchild", "service", "session", "started"]


async def test_timeout_spares_other_commands(sandbox: BaseEnvironment) -> None:
    """What an earlier command started, and what runs beside it, is not the timed-out command's."""
    await sandbox.exec("rm -rf /tmp/spared; mkdir -p /tmp/spared")
    await sandbox.exec("(sleep 2; touch /tmp/spared/earlier) >/dev/null 2>&1 &")
    beside = asyncio.create_task(sandbox.exec("sleep 2; touch /tmp/spared/beside; echo fine"))
    with pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec("sleep 60", timeout_sec=1)
    assert (await beside).stdout == "fine\n"
    await asyncio.sleep(0.5)
    assert await _names(sandbox, "/tmp/spared") == ["beside", "earlier"]


async def test_command_ends_though_its_child_keeps_the_output(sandbox: BaseEnvironment) -> None:
    began = time.monotonic()
    result = await sandbox.exec("sleep 45 & echo $! > /tmp/keeper; echo said", timeout_sec=40)
    assert result.stdout == "said\n" and result.return_code == 0
    assert time.monotonic() - began < 20
    assert (await sandbox.exec("kill $(cat /tmp/keeper)")).return_code == 0


async def test_orphans_are_reaped(make_sandbox: MakeSandbox) -> None:
    """Processes whose parent died do not stay as zombies, which would use up the limit for processes."""
    sandbox = await make_sandbox()
    await sandbox.exec("for i in 1 2 3 4 5; do (setsid sh -c 'sleep 0.1' >/dev/null 2>&1 &); done; sleep 1")
    result = await sandbox.exec("grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l")
    assert (result.stdout or "").strip() == "0"
