"""Lines of the log: what they say, in which form, and what they never say."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from datetime import datetime, timedelta

import pytest

from seatrial.logs import noting, write_logs
from seatrial.settings import Settings

Lines = Callable[[], list[str]]


@pytest.fixture
def written() -> Iterator[Callable[[str], Lines]]:
    """Sets up logging as a process of the service does, and undoes it."""
    gc.collect()  # what asyncio says about garbage of earlier tests belongs to none of these
    root = logging.getLogger()
    before = list(root.handlers), root.level
    stream = io.StringIO()

    def start(form: str) -> Lines:
        with redirect_stderr(stream):
            write_logs(Settings(log_format=form, openrouter_api_key="canary-key-123456"))  # type: ignore[arg-type]
        return lambda: stream.getvalue().splitlines()

    yield start
    root.handlers[:], level = before
    root.setLevel(level)


def test_a_line_of_text_says_when_how_bad_who_what_and_about_which(written: Callable[[str], Lines]) -> None:
    lines = written("text")
    with noting(job_id=3, trial_id=7, **{"try": 2}):
        logging.getLogger("seatrial.somewhere").warning("It %s", "happened")
    [line] = lines()
    moment, _, told = line.partition(" ")
    assert datetime.fromisoformat(moment).utcoffset() == timedelta(0)
    assert told == "WARNING seatrial.somewhere It happened job_id=3 trial_id=7 try=2"


def test_a_line_of_json_is_one_object_with_the_traceback_in_it(written: Callable[[str], Lines]) -> None:
    lines = written("json")
    try:
        raise ValueError("two\nlines")
    except ValueError:
        with noting(request_id="r1"):
            logging.getLogger("seatrial.x").exception("Oh", extra={"about": {"status": 500}})
    [line] = lines()
    told = json.loads(line)
    assert (told["level"], told["logger"], told["message"]) == ("ERROR", "seatrial.x", "Oh")
    assert (told["request_id"], told["status"]) == ("r1", 500)
    assert "ValueError: two" in told["exception"]


async def test_what_is_noted_belongs_to_one_task(written: Callable[[str], Lines]) -> None:
    lines = written("json")

    async def work(trial: int) -> None:
        with noting(trial_id=trial):
            await asyncio.sleep(0)
            logging.getLogger("seatrial.x").info("inside")

    await asyncio.gather(work(1), work(2))
    logging.getLogger("seatrial.x").info("outside")
    assert [json.loads(line).get("trial_id") for line in lines()] == [1, 2, None]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_known_secret_is_blotted_out_wherever_it_stands(written: Callable[[str], Lines], form: str) -> None:
    lines = written(form)
    log = logging.getLogger("seatrial.x")
    with noting(request_id="canary-key-123456"):
        log.info("the key is %s, the word is parrot", "canary-key-123456")
    try:
        raise ValueError("canary-key-123456")
    except ValueError:
        log.exception("again", extra={"about": {"field": "canary-key-123456"}})
    text = "\n".join(lines())
    assert "canary-key-123456" not in text
    assert text.count("[REDACTED]") >= 4
    assert "parrot" in text
