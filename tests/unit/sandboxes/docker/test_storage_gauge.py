"""The engine is asked for as long as the container runs, whatever it answers once."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web

from seatrial.sandboxes.docker.client import EngineClient
from seatrial.sandboxes.docker.storage import EngineGauge
from tests.waiting import eventually


@pytest.mark.parametrize(
    "answer", ['{"SizeRw": "much"}', "[]", "<html>", "no json"], ids=["word", "list", "html", "text"]
)
async def test_an_answer_that_nobody_can_read_does_not_end_the_limit(
    tmp_path: Path, answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    answers, told = [answer], list[int]()

    async def inspect(request: web.Request) -> web.Response:
        return web.Response(text=answers[0], content_type="application/json")

    app = web.Application()
    app.router.add_get("/containers/one/json", inspect)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.UnixSite(runner, str(tmp_path / "engine")).start()
    async with EngineClient(f"unix://{tmp_path}/engine") as engine:
        gauge = EngineGauge(engine, "one", interval_sec=0.01)
        gauge.begin(100, lambda size, danger: told.append(size))
        try:
            await eventually(
                lambda: any("Storage of one failed" in said for said in caplog.messages), "the log says it"
            )
            answers[0] = '{"SizeRw": 150}'
            await eventually(lambda: told == [150], "the limit holds")
        finally:
            await gauge.end()
    await runner.cleanup()
