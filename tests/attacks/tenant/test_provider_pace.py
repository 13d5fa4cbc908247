"""A caller's own model server, or own key, that says how long everybody has to wait."""

from __future__ import annotations

import asyncio

import pytest

from seatrial.adapters.runner_harbor.equip import ModelAccess
from seatrial.agents.model_retries import CallPace
from seatrial.domain.model_calls.provider_pace import LONGEST_PAUSE_SEC
from seatrial.engine.provider_pace import ProviderPace
from seatrial.testing.memory_store.pace import MemoryPace
from tests.virtual_time import run_virtual, virtual_clock

OPERATORS = ("openai/model", None, "sk-of-the-operator")
FOR_EVER = 1e12


def paces(*calls: tuple[str, str | None, str]) -> list[CallPace]:
    access = ModelAccess(pace=ProviderPace(MemoryPace(), "worker", virtual_clock))
    found = [access._pace_of(*call) for call in calls]
    return [pace for pace in found if pace is not None]


async def refuse(pace: CallPace, seconds: float) -> None:
    turn = await pace.pace.take(pace.name)
    turn.refused(seconds)
    turn.end()
    await pace.pace.sync()


async def seconds_until_a_turn(pace: CallPace) -> float:
    turn = await pace.pace.take(pace.name)
    turn.end()
    return turn.waited_sec


@pytest.mark.parametrize(
    "callers",
    [("openai/model", "http://caller.example/v1", "sk-of-the-operator"), ("openai/model", None, "sk-of-the-caller")],
    ids=["own server", "own key"],
)
def test_a_callers_provider_stops_nobody_else(callers: tuple[str, str | None, str]) -> None:
    async def play() -> float:
        hostile, honest = paces(callers, OPERATORS)
        await refuse(hostile, FOR_EVER)
        return await seconds_until_a_turn(honest)

    assert run_virtual(play()) == 0.0


@pytest.mark.parametrize("seconds", [FOR_EVER, float("inf"), -1.0, float("nan")])
def test_no_pause_lasts_for_ever(seconds: float) -> None:
    async def play() -> float:
        [pace] = paces(OPERATORS)
        await refuse(pace, seconds)
        async with asyncio.timeout(2 * LONGEST_PAUSE_SEC):
            return await seconds_until_a_turn(pace)

    assert run_virtual(play()) <= LONGEST_PAUSE_SEC


def test_an_honest_pause_is_kept_by_all_who_share_it() -> None:
    async def play() -> list[float]:
        one, other = paces(OPERATORS, OPERATORS)
        await refuse(one, 30.0)
        return [await seconds_until_a_turn(pace) for pace in (one, other)]

    first, second = run_virtual(play())
    assert first == pytest.approx(30.0) and second == 0.0, "who comes later finds it over"
