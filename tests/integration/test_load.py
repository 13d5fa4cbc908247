"""The load test against real services: one that works, one that never works, and one that refuses."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.load import PRESETS, Plan, arguments, main, measure, plan_of
from benchmarks.load_service import Target

from seatrial.domain.result import Result
from seatrial.domain.token import NewToken, Role, fingerprint, fresh_secret
from seatrial.domain.trial import Cause, Outcome
from seatrial.testing.fake_runner import FAIL, PASS, FakeRunner
from tests.command_line import CommandLine
from tests.contracts.http.server import Server, serving
from tests.running_service import service_up

DOORS = [("--door", "tbench"), ("--door", "native"), ("--door", "native", "--watch")]
SMALL = ("--users", "3", "--tasks", "2", "--runs", "3")


def address(server: Server) -> str:
    return str(server.http.base_url)


def test_the_presets_are_what_they_say() -> None:
    plan = PRESETS["oracle-750"]
    assert plan.users * plan.tasks * plan.runs == 750 and (plan.users, plan.tasks) == (15, 5)
    assert (PRESETS["25-tabs"].users, PRESETS["25-tabs"].tasks, PRESETS["25-tabs"].runs) == (25, 1, 10)
    given = plan_of(arguments(["--preset", "oracle-750", "--runs", "2"]))
    assert (given.users, given.tasks, given.runs) == (15, 5, 2)


@pytest.mark.sandbox
def test_a_service_with_real_sandboxes(cli: CommandLine, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    with service_up(cli) as service:
        service.until_ready()
        assert main(["--url", service.url, *SMALL, "--every", "0.2", "--json", str(report)]) == 0
    told = json.loads(report.read_text())
    assert (told["accepted"], told["finished"], told["passed"], told["lost"], told["duplicated"]) == (18, 18, 18, 0, 0)
    assert told["clean"] and told["peak_in_flight"] >= 1 and told["latencies"]["submit"]["p99"] > 0


@pytest.mark.parametrize("door", DOORS, ids=lambda door: "-".join(word.strip("-") for word in door[1:]))
async def test_each_door_counts_the_same(tmp_path: Path, door: tuple[str, ...]) -> None:
    """Users have tokens of their own, which are gone afterwards; faults are told apart."""
    fault = Result(outcome=Outcome.ERROR, cause=Cause.VERIFIER, message="No reward.")
    runner = FakeRunner(lambda order: (PASS, FAIL, fault)[order.trial.attempt - 1])
    async with serving(tmp_path / "home", runner, auth="token") as server:
        store, secret, now = server.installation.store, fresh_secret(), server.installation.clock()
        admin = NewToken(name="admin", role=Role.ADMIN, fingerprint=fingerprint(secret))
        await store.tokens.save(admin, now)
        options = arguments([*SMALL, *door])
        report = await measure(Target(address(server), secret), plan_of(options), options)
        assert (report.accepted, report.finished, report.lost, report.duplicated) == (18, 18, 0, 0)
        assert (report.passed, report.failed, report.error, report.clean) == (6, 6, 6, True)
        assert len(runner.orders) == 18
        kept = [token.name for token in await store.tokens.all() if token.revoked_at is None]
        assert kept == ["admin"]


@pytest.mark.parametrize("door", ["tbench", "native"])
async def test_runs_that_never_end_are_lost(tmp_path: Path, door: str) -> None:
    async with serving(tmp_path / "home", None) as server:
        told = await _in_a_thread(address(server), tmp_path, "--door", door, "--patience", "1")
    assert told["status"] == 1
    assert (told["accepted"], told["finished"], told["lost"]) == (18, 0, 18)


async def test_a_service_that_refuses_is_not_clean(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", FakeRunner(), max_attempts=2) as server:
        told = await _in_a_thread(address(server), tmp_path)
    assert (told["status"], told["accepted"], told["refused"]) == (1, 0, 18)
    assert "attempts" in told["refusals"][0]


async def _in_a_thread(url: str, place: Path, *more: str) -> dict[str, Any]:
    report = place / "report.json"
    status = await asyncio.to_thread(main, ["--url", url, *SMALL, "--json", str(report), *more])
    return {**json.loads(report.read_text()), "status": status}


def test_a_plan_says_itself() -> None:
    assert str(Plan(1, 2, 3, title="mine")) == "mine: 1 users x 2 tasks x 3 runs"
