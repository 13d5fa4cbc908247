"""``seatrial trial logs``: the timeline of a trial, its logs in full, or what happens right now."""

from __future__ import annotations

import asyncio
import codecs
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress

from seatrial.cli.backend.backend import Backend
from seatrial.cli.view.columns import terminal_width
from seatrial.cli.view.say import say
from seatrial.cli.view.summary import INTERRUPTED
from seatrial.cli.view.trial_text import headline
from seatrial.cli.view.trial_timeline import TryTimeline, explaining_log, failed_tests, last_lines
from seatrial.domain.event import Event
from seatrial.domain.likeness import did_you_mean
from seatrial.domain.output import Output, OutputStream
from seatrial.domain.result import Result, StoredFile
from seatrial.domain.terminal_text import readable, shown
from seatrial.domain.trial import TrialState
from seatrial.engine.trials.trial_files import KeptFiles
from seatrial.errors import NotFound
from seatrial.system.processes import on_signals

_TAIL_PIECES = 2
"""Pieces of a file, of a megabyte each, in which its last lines are looked for."""


async def print_timeline(backend: Backend, trial_id: int, number: int | None) -> None:
    row, tries = await backend.trials.get(trial_id)
    try:
        kept = await backend.trials.files(trial_id, number)
    except NotFound as error:
        waits = row.trial.state is not TrialState.ENDED and number is None
        raise NotFound(error.message, fix="--follow shows what happens until it ends." if waits else "") from error
    result = next((a_try.result for a_try in tries if a_try.number == kept.try_number), None) or row.result
    say(headline(row.trial, row.result), bold=True)
    if row.trial.state is not TrialState.ENDED:
        say(
            f"The trial is running. This is try {kept.try_number}, which ended; --follow shows the current one.",
            err=True,
        )
    timeline = TryTimeline(terminal_width())
    async for event in backend.trials.events(trial_id, follow=False):
        if isinstance(event, Event) and event.attempt in (None, kept.try_number):
            for line in timeline.lines(event):
                say(line)
    if result is not None:
        await _print_reason(backend, kept, result)
    names = ", ".join(file.path for file in kept.logs) or "none"
    say(f"\nLogs: {names}. --raw prints them all, --file FILE one of them.", err=True)


async def print_raw(backend: Backend, trial_id: int, number: int | None) -> None:
    kept = await backend.trials.files(trial_id, number)
    for file in kept.logs:
        say(f"==> {file.path} <==")
        await _print_text(backend, kept, file)
        say()
    if not kept.logs:
        say("This try wrote no logs.", err=True)


async def print_log(backend: Backend, trial_id: int, number: int | None, name: str) -> None:
    kept = await backend.trials.files(trial_id, number)
    try:
        file = kept.find(name)
    except NotFound as error:
        known = [file.path for file in kept.files]
        fix = f"{did_you_mean(name, known)} `seatrial trial files {trial_id}` lists them.".lstrip()
        raise NotFound(error.message, fix=fix) from error
    await _print_text(backend, kept, file)


async def print_follow(backend: Backend, trial_id: int) -> int:
    """Prints events and output as they come, then the reason. An interrupt leaves the trial running."""
    row, _ = await backend.trials.get(trial_id)
    say(headline(row.trial, row.result), bold=True)
    following = asyncio.create_task(_follow(backend, trial_id))
    with on_signals(following.cancel), suppress(asyncio.CancelledError):
        await following
    if following.cancelled():
        say(f"Trial {trial_id} continues.", err=True)
        return INTERRUPTED
    row, _ = await backend.trials.get(trial_id)
    if row.result is not None:
        await _print_reason(backend, await backend.trials.files(trial_id, None), row.result)
    return 0


async def _follow(backend: Backend, trial_id: int) -> None:
    timeline = TryTimeline(terminal_width())
    async for heard in backend.trials.events(trial_id, follow=True):
        lines = timeline.lines(heard) if isinstance(heard, Event) else _heard(heard)
        for line in lines:
            say(line)


def _heard(piece: Output) -> list[str]:
    text = shown(piece.text) if piece.stream is OutputStream.TERMINAL else piece.text
    return [f"  {piece.stream} | {line}" for line in readable(text).splitlines() if line.strip()]


async def _print_reason(backend: Backend, kept: KeptFiles, result: Result) -> None:
    if result.message:
        say(f"\n{result.message}")
    for line in failed_tests(result):
        say(line)
    log = explaining_log(kept.logs, result)
    if log is None:
        return
    say()
    with suppress(NotFound):  # removed by the clean-up of old files
        for line in last_lines(await _tail(backend.trials.read(kept, log)), log.path):
            say(line)


async def _tail(pieces: AsyncIterator[bytes]) -> str:
    last: deque[bytes] = deque(maxlen=_TAIL_PIECES)
    async for piece in pieces:
        last.append(piece)
    return b"".join(last).decode("utf-8", "replace")


async def _print_text(backend: Backend, kept: KeptFiles, file: StoredFile) -> None:
    text = codecs.getincrementaldecoder("utf-8")("replace")
    async for piece in backend.trials.read(kept, file):
        say(text.decode(piece), nl=False)
