"""Rollouts without any framework: each in a sandbox of its own, graded by its tests, gone afterwards in every case."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent

import pytest

from seatrial.domain.task import TaskSelection
from seatrial.domain.trial import Mark
from seatrial.errors import Conflict, ImageFault, SandboxFault, SeatrialError, Unsupported, VerifierFault
from seatrial.rollouts.command_socket import CommandSocket, Ticket, ask
from seatrial.rollouts.host import RolloutHost
from seatrial.rollouts.rules import RolloutRules
from seatrial.rollouts.tasks import FoundTask, TaskFinder
from seatrial.settings import Settings
from tests.command_line import traces
from tests.engine import Engine
from tests.task_files import write_task
from tests.verifiers.generations import sandboxes_of_rollouts
from tests.verifiers.tasks import write_faulty
from tests.waiting import LIMIT_SEC, eventually, until

pytestmark = pytest.mark.sandbox

SOLVE = "echo 42 > /app/answer.txt"


@pytest.fixture
def settings(tmp_path: Path, image_cache: Path) -> Settings:
    return Settings(home=tmp_path / "home", cache=image_cache)


@pytest.fixture
async def host(settings: Settings) -> AsyncIterator[RolloutHost]:
    async with RolloutHost(settings, RolloutRules(sandbox="oci")) as opened:
        yield opened


def found(settings: Settings, place: Path) -> FoundTask:
    [task] = TaskFinder(settings).in_place(place, TaskSelection()).tasks
    return task


@pytest.fixture
def task(settings: Settings, tmp_path: Path) -> FoundTask:
    """Its limits only end a hang: many rollouts of it may be open, and graded, at the same time."""
    return found(settings, write_task(tmp_path / "tasks", "small", agent_timeout=1800.0, verifier_timeout=1800.0))


class SweepsLater(RolloutHost):
    """Cannot look for leftovers at first."""

    swept = 0

    async def _sweep(self) -> int:
        self.swept += 1
        if self.swept == 1:
            raise OSError(5, "Input/output error")
        return await super()._sweep()


async def test_no_rollout_ends_for_what_others_left(
    settings: Settings, task: FoundTask, caplog: pytest.LogCaptureFixture
) -> None:
    async with SweepsLater(settings, RolloutRules(sandbox="oci")) as host:
        for _ in range(3):
            await (await host.open(task)).close()
        assert host.swept == 2, "tried again, and not once more"
    assert any("Leftovers failed" in said for said in caplog.messages)


async def test_the_tests_decide(host: RolloutHost, task: FoundTask) -> None:
    solved, unsolved = await asyncio.gather(host.open(task), host.open(task))
    assert "[no output]" in await solved.execute_commands([SOLVE])
    assert [(await rollout.grade()).score for rollout in (solved, unsolved)] == [1.0, 0.0]
    assert host.in_flight == 0


async def test_rollouts_of_one_task_share_nothing(host: RolloutHost, task: FoundTask) -> None:
    first, second = await asyncio.gather(host.open(task), host.open(task))
    await first.execute_commands(["echo here > /app/left", "(sleep 600 &)"])

    async def sleeps() -> bool:
        return "sleep" in await first.execute_commands(["cat /proc/[0-9]*/comm"])

    await eventually(sleeps, "what was left in the background has begun")
    assert "here" in await first.execute_commands(["cat /app/left"])
    assert "No such file" in await second.execute_commands(["cat /app/left"])
    assert "sleep" not in await second.execute_commands(["cat /proc/[0-9]*/comm"])
    assert await sleeps()


async def test_the_terminal_tells_status_and_stays_where_it_was(host: RolloutHost, task: FoundTask) -> None:
    rollout = await host.open(task)
    answer = await rollout.execute_commands(["pwd", "cd /tmp", "pwd", "echo out; echo err >&2; exit 3", "pwd"])
    assert answer.splitlines() == [
        *("$ pwd", "/app", "$ cd /tmp", "[no output]", "$ pwd", "/tmp"),
        *("$ echo out; echo err >&2; exit 3", "out", "err", "[exit status 3]", "$ pwd", "/tmp"),
    ]


async def test_long_output_keeps_its_end_and_says_what_is_missing(host: RolloutHost, task: FoundTask) -> None:
    rollout = await host.open(task)
    answer = await rollout.execute_commands(["seq 1 1000000"])
    whole = sum(len(str(number)) + 1 for number in range(1, 1_000_001)) - 1
    assert f"[the first {whole - 20_000} characters of this output are left out]" in answer
    assert answer.endswith("\n999999\n1000000")


async def test_a_command_that_takes_too_long_is_killed_and_the_rollout_goes_on(
    settings: Settings, task: FoundTask
) -> None:
    for seconds in (3, 30, 120):  # a busy machine may need more than the first for a command that ends by itself
        async with RolloutHost(settings, RolloutRules(command_timeout_sec=seconds)) as host:
            rollout = await host.open(task)
            assert f"killed after {seconds} seconds" in await rollout.execute_commands(["sleep 600"])
            if "killed after" in await rollout.execute_commands([SOLVE]):
                continue

            async def is_gone() -> bool:
                names = await rollout.execute_commands(["cat /proc/[0-9]*/comm"])  # noqa: B023 - ends before the next
                return "sleep" not in names and "killed after" not in names

            await eventually(is_gone, "what was killed is gone")
            assert (await rollout.grade()).passed
            return
    raise AssertionError("no command ends by itself any more")


async def test_the_tasks_own_limit_ends_the_attempt_which_is_graded(
    settings: Settings, host: RolloutHost, tmp_path: Path
) -> None:
    for seconds in (10.0, 60.0, 180.0):  # a busy machine may need more than the first for the solution
        task = found(settings, write_task(tmp_path / f"{seconds:g}", "short", agent_timeout=seconds))
        rollout = await host.open(task)
        await rollout.execute_commands([SOLVE])
        if not rollout.out_of_time:
            break
        await rollout.close()
    answer = await rollout.execute_commands(["sleep 600"])
    assert "the time for this task is over" in answer
    assert rollout.out_of_time
    graded = await rollout.grade()
    assert graded.passed
    assert Mark.AGENT_TIMEOUT in graded.marks


async def test_a_broken_sandbox_is_a_fault_and_never_a_score(
    host: RolloutHost, task: FoundTask, image_cache: Path
) -> None:
    rollout = await host.open(task)
    [mine] = sandboxes_of_rollouts(image_cache)
    processes = [os.pidfd_open(int(place.read_text())) for place in (image_cache / "run" / mine).glob("*/pid")]
    for process in processes:
        signal.pidfd_send_signal(process, signal.SIGKILL)
    await eventually(lambda: len(select.select(processes, [], [], 0)[0]) == len(processes), "all of them ended")
    with pytest.raises(SandboxFault):
        await rollout.execute_commands(["true"])
    with pytest.raises(SandboxFault):
        await rollout.grade()
    whole = await host.open(task)
    assert (await whole.grade()).score == 0.0


async def test_faults_of_image_and_grader_are_raised(settings: Settings, host: RolloutHost, tmp_path: Path) -> None:
    tasks = write_faulty(tmp_path / "faulty")
    with pytest.raises(ImageFault, match="The build failed") as raised:
        await host.open(found(settings, tasks / "unbuildable"))
    assert raised.value.__cause__ is not raised.value, "frameworks follow the chain of causes to its end"
    silent = await host.open(found(settings, tasks / "silent-grader"))
    with pytest.raises(VerifierFault, match="No reward file"):
        await silent.grade()
    good = await host.open(found(settings, tasks / "good"))
    await good.execute_commands([SOLVE])
    assert (await good.grade()).passed


async def test_a_task_cannot_read_the_trainers_keys(
    settings: Settings, host: RolloutHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINER_API_KEY", "secret")
    test = 'echo "$LEAK" > /logs/verifier/leak.txt; [ "$LEAK" = none ] && echo 1 > /logs/verifier/reward.txt'
    asks = '[verifier.env]\nLEAK = "${TRAINER_API_KEY%s}"'
    with pytest.raises(Unsupported, match="LEAK"):
        await host.open(found(settings, write_task(tmp_path / "a", "thief", test=test, more=asks % "")))
    modest = await host.open(found(settings, write_task(tmp_path / "b", "modest", test=test, more=asks % "x:-none")))
    assert (await modest.grade()).passed


async def test_one_that_ended_says_so(host: RolloutHost, task: FoundTask) -> None:
    rollout = await host.open(task)
    await rollout.close()
    await rollout.close()
    with pytest.raises(Conflict):
        await rollout.execute_commands(["true"])


async def test_cancelled_and_closed_rollouts_leave_nothing(
    settings: Settings, task: FoundTask, image_cache: Path
) -> None:
    async with RolloutHost(settings, RolloutRules(sandbox="oci")) as host:
        held = [await host.open(task) for _ in range(2)]
        busy = asyncio.create_task(held[0].execute_commands(["sleep 60"]))
        opening = [asyncio.create_task(host.open(task)) for _ in range(12)]
        await eventually(lambda: len(sandboxes_of_rollouts(image_cache)) >= 3, "some of them are half open")
        mine = sandboxes_of_rollouts(image_cache)
        for each in opening[:10]:
            each.cancel()
        ended = await asyncio.gather(*opening[:10], return_exceptions=True)
        assert any(isinstance(end, asyncio.CancelledError) for end in ended)
        mine |= sandboxes_of_rollouts(image_cache)
    await asyncio.gather(busy, *opening, return_exceptions=True)
    assert not sandboxes_of_rollouts(image_cache)
    assert not traces(image_cache, mine)
    assert not (settings.work_dir.exists() and list(settings.work_dir.iterdir()))


def test_any_event_loop_may_ask(settings: Settings, task: FoundTask) -> None:
    """Trainers have one loop after another, and sometimes none."""
    host = RolloutHost(settings, RolloutRules(sandbox="oci"))
    try:
        rollout = asyncio.run(host.open(task))
        asyncio.run(rollout.execute_commands([SOLVE]))
        assert asyncio.run(rollout.grade()).passed
    finally:
        host.close_now()


async def test_sixty_four_in_flight_none_lost(host: RolloutHost, task: FoundTask) -> None:
    rollouts = await asyncio.gather(*(host.open(task) for _ in range(64)))
    assert host.in_flight == 64
    await asyncio.gather(*(each.execute_commands([SOLVE]) for each in rollouts[::2]))
    scores = [graded.score for graded in await asyncio.gather(*(each.grade() for each in rollouts))]
    assert scores == [1.0, 0.0] * 32
    assert host.in_flight == 0


LEAVES = """
    import asyncio, os, sys
    from pathlib import Path
    from seatrial.domain.task import TaskSelection
    from seatrial.rollouts.host import RolloutHost
    from seatrial.rollouts.tasks import TaskFinder
    from seatrial.settings import Settings

    settings = Settings()
    [task] = TaskFinder(settings).in_place(Path(sys.argv[1]), TaskSelection()).tasks
    host = RolloutHost(settings)

    async def main():
        rollouts = [await host.open(task) for _ in range(2)]
        busy = [asyncio.create_task(each.execute_commands(["sleep 60"])) for each in rollouts]
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        sys.exit(7)

    asyncio.run(main())
"""


def leaving(settings: Settings, task: FoundTask) -> subprocess.Popen[str]:
    """A program that opens two rollouts, closes none and exits once it is told a line."""
    known = {"SEATRIAL_HOME": str(settings.home), "SEATRIAL_CACHE": str(settings.cache)}
    command = [sys.executable, "-c", dedent(LEAVES), str(task.directory)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env={**os.environ, **known}, stdin=pipe, stdout=pipe, text=True, bufsize=1)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def test_a_program_that_exits_with_open_rollouts_leaves_nothing(
    settings: Settings, task: FoundTask, image_cache: Path
) -> None:
    with leaving(settings, task) as program:
        mine = sandboxes_of_rollouts(image_cache, program.pid)
        assert len(mine) == 2
        assert program.stdin is not None
        program.stdin.write("leave\n")
        assert program.wait(LIMIT_SEC) == 7
    assert not traces(image_cache, mine)
    assert not list(settings.work_dir.iterdir())


async def test_what_a_killed_program_left_is_removed_by_the_next(
    settings: Settings, task: FoundTask, image_cache: Path
) -> None:
    with leaving(settings, task) as program:
        mine = sandboxes_of_rollouts(image_cache, program.pid)
        assert len(mine) == 2
        program.kill()
    async with RolloutHost(settings, RolloutRules(sandbox="oci")) as host:
        await (await host.open(task)).close()
    until(lambda: not traces(image_cache, mine), "nothing left")
    assert not list(settings.work_dir.iterdir())


async def test_another_process_reaches_a_rollout_with_its_ticket(host: RolloutHost, task: FoundTask) -> None:
    commands, rollout = CommandSocket(), await host.open(task)
    try:
        ticket = await commands.ticket(rollout)
        assert Path(ticket.socket).parent.stat().st_mode & 0o077 == 0
        assert (await ask(ticket, ["cd /tmp", "pwd"])).answer.endswith("/tmp")
        with pytest.raises(SeatrialError, match="no such rollout"):
            await ask(Ticket(socket=ticket.socket, rollout="guessed"), ["true"])
        await rollout.close()
        assert "has ended" in (await ask(ticket, ["true"])).fault
        commands.void(ticket)
        with pytest.raises(SeatrialError, match="no such rollout"):
            await ask(ticket, ["true"])
    finally:
        await commands.close()
    with pytest.raises(SandboxFault):
        await ask(ticket, ["true"])


@pytest.mark.engine
async def test_the_same_in_a_container_engine(
    settings: Settings, task: FoundTask, container_engine: Engine, tmp_path: Path
) -> None:
    there = settings.model_copy(update={"docker_host": container_engine.host})
    async with RolloutHost(there, RolloutRules(sandbox="docker")) as host:
        solved, unsolved = await asyncio.gather(host.open(task), host.open(task))
        assert "/app" in await solved.execute_commands([SOLVE, "pwd"])
        assert [(await rollout.grade()).score for rollout in (solved, unsolved)] == [1.0, 0.0]
