"""Trials of ``seatrial run`` at a provider that takes one call at a time: all pass, and results say who waited."""

from __future__ import annotations

import asyncio
from typing import Any, override

import pytest

from seatrial.scripted_models.server import Capacity, ScriptedModels
from tests.command_line import SAMPLES, CommandLine
from tests.waiting import eventually


class Meeting(ScriptedModels):
    """Answers nobody before two calls have met, however far apart the trials started."""

    @override
    async def _complete(self, *call: Any) -> None:
        await eventually(lambda: self.refused, "another call is refused")
        await super()._complete(*call)


@pytest.mark.sandbox
async def test_trials_take_turns_and_say_so(cli: CommandLine) -> None:
    capacity = Capacity(at_once=1, seconds=0.3, retry_after_sec=1.0)
    async with Meeting(capacity=capacity) as models:
        (cli.directory / ".env").write_text(f"OPENAI_API_KEY=sk-pace-0123456789\nOPENAI_API_BASE={models.base_url}\n")
        command = cli.start(
            "run", SAMPLES / "read-the-screen", "-a", "terminus-2", "-m", "openai/solve-read-the-screen", "-k", "4",
            "-n", "4",
        )  # fmt: skip
        ended = await asyncio.to_thread(command.wait)
    assert ended.status == 0, ended.err
    assert cli.count(outcome="passed") == 4
    assert models.refused > 0, "they met at the provider"
    shown = [cli("trial", "show", str(number)).out for number in range(1, 5)]
    assert any("throttled" in text and "for turns at the model's provider" in text for text in shown), shown[0]
