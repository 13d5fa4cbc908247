"""``python -m benchmarks.load [--preset oracle-750|25-tabs] [--url URL | --start embedded|fleet]``: a load test.

Many users upload a small task, start its runs and follow them until all have ended. The report says what was accepted,
finished, lost and duplicated, and how long everything took. The exit status is 1 if anything was lost, duplicated or
refused. It needs no model and no key: the oracle agent runs the task's own solution.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.load_doors import Door, NativeDoor, Refused, RunnerDoor, Work, session
from benchmarks.load_report import LoadReport, TaskSeen, Timings, report_of
from benchmarks.load_service import KINDS, Target, started
from benchmarks.place import TRIVIAL
from seatrial.client import AsyncClient
from seatrial.domain.token import Role
from seatrial.errors import SeatrialError
from seatrial.settings import Settings


@dataclass(frozen=True, slots=True)
class Plan:
    """Who asks for what."""

    users: int
    tasks: int
    """Tasks of each user, all submitted at once."""
    runs: int
    every_sec: float = 1.0
    """Seconds between two looks of a client at a task."""
    title: str = "load"

    def __str__(self) -> str:
        return f"{self.title}: {self.users} users x {self.tasks} tasks x {self.runs} runs"


PRESETS = {
    "oracle-750": Plan(15, 5, 10, title="oracle-750"),
    "25-tabs": Plan(25, 1, 10, title="25-tabs"),
}


@dataclass
class LoadTest:
    """One load test. ``run`` does it and reports."""

    plan: Plan
    patience_sec: float
    """Runs that have not ended after this many seconds are lost."""
    timings: Timings = field(default_factory=Timings)
    refusals: list[str] = field(default_factory=list)
    _tasks: list[TaskSeen] = field(default_factory=list)
    _last_end: float = 0.0

    async def run(self, doors: list[Door]) -> LoadReport:
        began = time.perf_counter()
        try:
            async with asyncio.TaskGroup() as group:
                for user, door in enumerate(doors, 1):
                    for number in range(1, self.plan.tasks + 1):
                        group.create_task(self._one_task(door, f"load-user{user}-task{number}"))
        except* Refused as refused:
            raise SystemExit(f"The service stopped answering: {refused.exceptions[0]}") from None
        seconds = (self._last_end or time.perf_counter()) - began
        refused_runs = len(self.refusals) * self.plan.runs
        return report_of(str(self.plan), self._tasks, self.refusals, refused_runs, self.timings, seconds)

    async def _one_task(self, door: Door, name: str) -> None:
        began = time.perf_counter()
        try:
            task_id = await door.submit(name)
        except Refused as refused:
            self.refusals.append(str(refused))
            return
        taken = time.perf_counter()
        self.timings.submit.append(taken - began)
        try:
            async with asyncio.timeout(self.patience_sec):
                await self._until_ended(door, task_id, taken)
            self._last_end = time.perf_counter()
            self.timings.whole.append(self._last_end - began)
        except TimeoutError:
            pass  # what has not ended is lost, and the report says so
        self._tasks.append(await door.seen(name, task_id))

    async def _until_ended(self, door: Door, task_id: int, taken: float) -> None:
        waits_for_first = True
        async for look in door.follow(task_id, self.plan.every_sec):
            self.timings.look.append(look.seconds)
            if look.begun and waits_for_first:
                self.timings.first_state.append(time.perf_counter() - taken)
                waits_for_first = False
            if look.ended >= self.plan.runs:
                return


@asynccontextmanager
async def opened_doors(target: Target, plan: Plan, work: Work, kind: str, watch: bool) -> AsyncIterator[list[Door]]:
    """One for each user, each with a token of its own if the service asks for tokens and ours may create some."""
    async with AsyncExitStack() as stack:
        tokens = await stack.enter_async_context(_tokens(target, plan.users))
        doors: list[Door] = []
        for token in tokens:
            if kind == "tbench":
                http = await stack.enter_async_context(session())
                doors.append(RunnerDoor(target.url, token, work, http))
            else:
                client = await stack.enter_async_context(AsyncClient(target.url, token, timeout=120))
                doors.append(NativeDoor(client, work, watch))
        yield doors


@asynccontextmanager
async def _tokens(target: Target, users: int) -> AsyncIterator[list[str]]:
    if not target.token:
        yield [""] * users
        return
    async with AsyncClient(target.url, target.token) as admin:
        if (await admin.installation.who_am_i()).role is not Role.ADMIN:
            yield [target.token] * users
            return
        made = [await admin.tokens.create(f"load-user{number}", expires="1d") for number in range(1, users + 1)]
        try:
            yield [token.secret for token in made]
        finally:
            for token in made:
                await admin.tokens.revoke(token.id)


async def measure(target: Target, plan: Plan, options: argparse.Namespace) -> LoadReport:
    with tempfile.TemporaryDirectory(prefix="seatrial-load-") as scratch:
        work = Work.of(options.task, Path(scratch), plan.runs, options.agent, options.model)
        async with opened_doors(target, plan, work, options.door, options.watch) as doors:
            return await LoadTest(plan, options.patience).run(doors)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("--preset", choices=PRESETS, help="15 x 5 x 10 runs, or 25 clients with one task each")
    for name in ("users", "tasks", "runs"):
        parser.add_argument(f"--{name}", type=int, metavar="N", help=f"number of {name}, instead of the preset's")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--url", default="http://127.0.0.1:8000", help="address of the running service")
    where.add_argument("--start", choices=KINDS, help="start a service for this test and remove it afterwards")
    parser.add_argument("--token", default="", help="an admin's, to create one for each user; a user's, to share it")
    parser.add_argument("--door", choices=("tbench", "native"), default="tbench", help="TBench Runner's API or our own")
    parser.add_argument("--watch", action="store_true", help="follow events instead of polling (native)")
    parser.add_argument("--task", type=Path, default=TRIVIAL, help="folder of the task")
    parser.add_argument("--agent", default="oracle")
    parser.add_argument("--model", default="", help="for agents that need one: scripted/… needs no key")
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="between two looks at a task")
    parser.add_argument("--patience", type=float, default=3600.0, metavar="SECONDS", help="then a run counts as lost")
    parser.add_argument("--concurrency", type=int, default=20, help="trials at once on each worker that --start starts")
    parser.add_argument("--workers", type=int, default=0, help="worker processes that --start starts [1, fleet 2]")
    parser.add_argument("--cache", type=Path, default=Settings().cache, help="images for --start (SEATRIAL_CACHE)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there too")
    return parser.parse_args(given)


def plan_of(options: argparse.Namespace) -> Plan:
    preset = PRESETS.get(options.preset, Plan(3, 2, 3))
    users, tasks, runs = options.users or preset.users, options.tasks or preset.tasks, options.runs or preset.runs
    return Plan(users, tasks, runs, options.every, preset.title)


def main(given: list[str] | None = None) -> int:
    options = arguments(given)
    plan = plan_of(options)
    try:
        if options.start:
            with started(options.start, options.cache, options.workers, options.concurrency) as target:
                report = asyncio.run(measure(target, plan, options))
        else:
            report = asyncio.run(measure(Target(options.url, options.token), plan, options))
    except SeatrialError as error:
        print(error, file=sys.stderr)
        return 2
    print(report.text())
    if options.json:
        options.json.write_text(json.dumps(report.document(), indent=1))
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main())
