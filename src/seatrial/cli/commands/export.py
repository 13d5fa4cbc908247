"""``seatrial export``: exports ended trials of a job as training data."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seatrial.cli.backend.session import on_backend
from seatrial.cli.options import JobId
from seatrial.cli.view.say import say
from seatrial.domain.terminal_text import is_seen

if TYPE_CHECKING:
    from seatrial.cli.backend.backend import Backend
    from seatrial.engine.reports.export import Tokens
    from seatrial.engine.trials.trial_files import KeptFiles
    from seatrial.ports.store import TrialRow

_LARGEST = 64 << 20
_TRAJECTORY = "agent/trajectory.json"
_NOT_PLAIN = re.compile("[^ -~]")


class Format(StrEnum):
    JSONL = "jsonl"
    ATIF = "atif"


@on_backend
async def export(
    backend: Backend,
    job_id: JobId,
    form: Annotated[
        Format,
        typer.Option(
            "--format", metavar="FORMAT", help="jsonl: chat messages with a reward. atif: trajectories with one."
        ),
    ] = Format.JSONL,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="PATH",
            help="File to write, one JSON object per line. For atif also a directory, one file per trial.",
        ),
    ] = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="Also export trials that ended in an error; they have no reward.")
    ] = False,
) -> None:
    """Export ended trials with their reward, for training. Reports how many were left out, and why."""
    await backend.jobs.get(job_id)  # raises for an unknown job
    left_out: Counter[str] = Counter()
    rows = [row for row in await backend.jobs.rows(job_id) if _is_wanted(row, errors, left_out)]
    with _Sink(output, form) as sink:
        for row in rows:
            found = 0
            async for name, content in _shaped(backend, row, form):
                sink.write(name, content)
                found += 1
            left_out["no trajectory"] += not found
    say(_account(sink.written, left_out), err=True)


def _is_wanted(row: TrialRow, errors: bool, left_out: Counter[str]) -> bool:
    from seatrial.domain.trial import Outcome

    outcome = row.trial.outcome
    if outcome is None:
        left_out["not ended"] += 1
    elif outcome is Outcome.CANCELLED or (outcome is Outcome.ERROR and not errors):
        left_out[outcome.value] += 1
    else:
        return True
    return False


async def _shaped(backend: Backend, row: TrialRow, form: Format) -> AsyncIterator[tuple[str, str]]:
    """Each trajectory of the trial's last try; a task with several steps has several."""
    from seatrial.engine.reports.export import scored_trajectory, training_row
    from seatrial.errors import NotFound

    shape: Callable[[TrialRow, Any, Tokens], dict[str, Any] | None]
    shape = training_row if form is Format.JSONL else scored_trajectory
    try:
        kept = await backend.trials.files(row.trial.id, None)
    except NotFound:
        return
    tokens = await _tokens(backend, kept)
    for file in sorted(kept.files, key=lambda file: file.path):
        if not file.path.endswith(_TRAJECTORY) or file.size > _LARGEST:
            continue
        content = b"".join([piece async for piece in backend.trials.read(kept, file)])
        try:
            # NaN and Infinity are not valid JSON.
            shaped = shape(row, json.loads(content, parse_constant=lambda _: None), tokens)
            line = _line(shaped) if shaped is not None else None
        except (ValueError, RecursionError):
            continue  # incomplete because the try was stopped, or not valid JSON
        if line is not None:
            yield _name(row, file.path), line


async def _tokens(backend: Backend, kept: KeptFiles) -> Tokens:
    """Token ids and logprobs of the trial's calls, if the model's server gave them."""
    from seatrial.domain.model_calls.replay import TOKENS_FILE
    from seatrial.engine.reports.export import read_tokens

    found = [file for file in kept.files if file.path == TOKENS_FILE and file.size <= _LARGEST]
    return read_tokens(b"".join([piece async for piece in backend.trials.read(kept, found[0])])) if found else ()


def _line(content: dict[str, Any]) -> str:
    """One line of JSON. Invisible characters are escaped, and lone surrogates are replaced."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return _NOT_PLAIN.sub(lambda found: _spelled(found[0]), text)


def _spelled(letter: str) -> str:
    if "\ud800" <= letter <= "\udfff":
        return "\ufffd"
    if is_seen(letter):
        return letter
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else json.dumps(letter)[1:-1]


def _name(row: TrialRow, path: str) -> str:
    step = path.removesuffix(_TRAJECTORY).removeprefix("steps/").strip("/")
    parts = [str(row.trial.id), row.trial.task.name, step]
    return re.sub(r"[^\w.-]+", "_", "-".join(part for part in parts if part))


class _Sink:
    """Writes to standard output, to a file of lines, or to a folder of files."""

    def __init__(self, output: Path | None, form: Format) -> None:
        self._folder = output if output is not None and form is Format.ATIF and not output.suffix else None
        self._file = output if self._folder is None else None
        self.written = 0

    def __enter__(self) -> _Sink:
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        elif self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
        self._lines = self._file.open("w", encoding="utf-8") if self._file is not None else None
        return self

    def __exit__(self, *exc: object) -> None:
        if self._lines is not None:
            self._lines.close()

    def write(self, name: str, text: str) -> None:
        self.written += 1
        if self._folder is not None:
            (self._folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
        elif self._lines is not None:
            self._lines.write(f"{text}\n")
        else:
            typer.echo(text)


def _account(written: int, left_out: Counter[str]) -> str:
    missing = ", ".join(f"{count} {why}" for why, count in sorted(left_out.items()) if count)
    return f"{written} exported." + (f" Left out: {missing}." if missing else "")
