"""Time: what a timeout or a cancellation ends, and what lives on between commands."""

from __future__ import annotations

import asyncio

import pytest
from harbor.environments.base import BaseEnvironment

from tests.contracts.sandbox.conftest import MakeSandbox
from tests.waiting import LIMIT_SEC, eventually

# A child, a child in a session of its own, and a grandchild in one. Each leaves a file some seconds later.
FAMILY = """
(sleep {seconds}; touch {place}/child) >/dev/null 2>&1 &
setsid bash -c 'sleep {seconds}; touch {place}/session' >/dev/null 2>&1 &
bash -c 'setsid bash -c "sleep {seconds}; touch {place}/grandchild" & wait' >/dev/null 2>&1 &
touch {place}/started
"""
# One that nobody is the parent of any more: a service, which a task may need, and which therefore stays.
SERVICE = """
(setsid bash -c 'sleep {seconds}; touch {place}/service' >/dev/null 2>&1 &)
"""


async def _names(sandbox: BaseEnvironment, place: str) -> list[str]:
    return ((await sandbox.exec(f"ls {place}")).stdout or "").split()


async def _gone(sandbox: BaseEnvironment, words: str) -> None:
    """Until no process has these words in its command line, which the last letter of the search is not among."""
    search = f"grep -al '{words[:-1]}[{words[-1]}]' /proc/[0-9]*/cmdline 2>/dev/null"

    async def is_gone() -> bool:
        return not ((await sandbox.exec(search)).stdout or "").strip()

    await eventually(is_gone, f"no process with {words!r}")


async def test_timeout_ends_the_call_in_time(sandbox: BaseEnvironment) -> None:
    async with asyncio.timeout(LIMIT_SEC):
        with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
            await sandbox.exec("sleep 600", timeout_sec=1)
    assert (await sandbox.exec("echo usable")).stdout == "usable\n"


async def test_timeout_kills_what_the_command_started(sandbox: BaseEnvironment) -> None:
    place = "/tmp/timed-out"
    await sandbox.exec(f"rm -rf {place}; mkdir -p {place}")
    for seconds in (1, 5, 25, 125):  # a call that ended before the family began shows nothing
        with pytest.raises(RuntimeError, match="timed out"):
            await sandbox.exec(FAMILY.format(place=place, seconds=600) + "sleep 600", timeout_sec=seconds)
        if await _names(sandbox, place):
            break
    await _gone(sandbox, f"touch {place}")
    assert await _names(sandbox, place) == ["started"]


async def test_late_answer_does_not_count(sandbox: BaseEnvironment) -> None:
    await sandbox.exec("rm -f /tmp/answer")
    with pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec("trap '' TERM INT HUP; sleep 600; echo 42 > /tmp/answer; sleep 600", timeout_sec=1)
    await _gone(sandbox, "echo 42 > /tmp/answer")
    assert (await sandbox.exec("test -e /tmp/answer")).return_code == 1


async def test_cancelling_kills_what_the_command_started(sandbox: BaseEnvironment) -> None:
    place = "/tmp/cancelled"
    await sandbox.exec(f"rm -rf {place}; mkdir -p {place}")
    running = asyncio.create_task(sandbox.exec(FAMILY.format(place=place, seconds=600) + "sleep 600"))

    async def has_started() -> bool:
        return "started" in await _names(sandbox, place)

    await eventually(has_started, "the family started")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await _gone(sandbox, f"touch {place}")
    assert await _names(sandbox, place) == ["started"]
    assert (await sandbox.exec("echo usable")).stdout == "usable\n"


async def test_background_processes_live_on(sandbox: BaseEnvironment) -> None:
    """The twin of the tests above: without a timeout, the same family finishes its work."""
    place = "/tmp/lives-on"
    await sandbox.exec(f"rm -rf {place}; mkdir -p {place}")
    await sandbox.exec((FAMILY + SERVICE).format(place=place, seconds=2), timeout_sec=round(LIMIT_SEC))
    everybody = ["child", "grandchild", "service", "session", "started"]

    async def all_left_their_file() -> bool:
        return await _names(sandbox, place) == everybody

    await eventually(all_left_their_file, "the whole family finished")


async def test_timeout_spares_other_commands(sandbox: BaseEnvironment) -> None:
    """What an earlier command started, and what runs beside it, is not the timed-out command's."""
    await sandbox.exec("rm -rf /tmp/spared; mkdir -p /tmp/spared")
    await sandbox.exec("(sleep 2; touch /tmp/spared/earlier) >/dev/null 2>&1 &")
    beside = asyncio.create_task(sandbox.exec("sleep 2; touch /tmp/spared/beside; echo fine"))
    with pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec("sleep 60", timeout_sec=1)
    assert (await beside).stdout == "fine\n"

    async def both_left_their_file() -> bool:
        return await _names(sandbox, "/tmp/spared") == ["beside", "earlier"]

    await eventually(both_left_their_file, "the other commands finished")


async def test_command_ends_though_its_child_keeps_the_output(sandbox: BaseEnvironment) -> None:
    async with asyncio.timeout(LIMIT_SEC):
        result = await sandbox.exec("sleep 600 & echo $! > /tmp/keeper; echo said", timeout_sec=300)
    assert result.stdout == "said\n" and result.return_code == 0
    assert (await sandbox.exec("kill $(cat /tmp/keeper)")).return_code == 0


async def test_orphans_are_reaped(make_sandbox: MakeSandbox) -> None:
    """Processes whose parent died do not stay as zombies, which would use up the limit for processes."""
    sandbox = await make_sandbox()
    await sandbox.exec("for i in 1 2 3 4 5; do (setsid sh -c 'sleep 0.1' >/dev/null 2>&1 &); done")
    await _gone(sandbox, "sleep 0.1")

    async def are_reaped() -> bool:
        return not ((await sandbox.exec("grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null")).stdout or "").strip()

    await eventually(are_reaped, "no zombie")
