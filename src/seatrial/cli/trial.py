"""``seatrial trial``: what happened in one attempt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.session import print_json, with_session

if TYPE_CHECKING:
    from seatrial.domain.result import Attempt, StoredFile
    from seatrial.wiring import Installation

app = typer.Typer(help="What happened in one attempt.", no_args_is_help=True, rich_markup_mode=None)
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
TrialId = Annotated[int, typer.Argument(help="A trial's number.")]
AttemptFlag = Annotated[int | None, typer.Option("--try", min=1, help="Which try; the last one without it.")]

_LOGS = ("trial.log", "agent/", "verifier/", "build.log", "exception.txt")


@app.command()
def show(trial_id: TrialId, as_json: JsonFlag = False) -> None:
    """Show a trial: its outcome, rewards, tests, timings, usage, lock and earlier tries."""

    async def work(session: Installation) -> None:
        from seatrial.cli.story import print_trial

        row = await session.store.trial(trial_id)
        attempts = await session.store.attempts(trial_id)
        if as_json:
            print_json({"trial": row.trial, "result": row.result, "tries": attempts})
            return
        print_trial(row, attempts)

    with_session(work)


@app.command()
def logs(trial_id: TrialId, number: AttemptFlag = None) -> None:
    """Print the logs of a trial in full: the agent's, the verifier's, Harbor's."""

    async def work(session: Installation) -> None:
        attempt = await _attempt(session, trial_id, number)
        names = [file.path for file in _files(attempt) if file.path.startswith(_LOGS) and _is_text(file.path)]
        for name in names:
            typer.echo(f"==> {name} <==")
            async for piece in session.blobs.stream(f"trials/{trial_id}/{attempt.number}/{name}"):
                typer.echo(printable(piece), nl=False)
            typer.echo()
        if not names:
            typer.echo("This try left no logs.", err=True)

    with_session(work)


@app.command()
def files(
    trial_id: TrialId,
    path: Annotated[str | None, typer.Argument(help="Print this file; without it, list them.")] = None,
    number: AttemptFlag = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Copy everything into this folder.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the kept files of a trial, print one, or copy them all out."""

    async def work(session: Installation) -> None:
        attempt = await _attempt(session, trial_id, number)
        prefix = f"trials/{trial_id}/{attempt.number}"
        kept = _files(attempt)
        if path is not None:
            async for piece in session.blobs.stream(f"{prefix}/{path}"):
                typer.get_binary_stream("stdout").write(piece)
        elif output is not None:
            for file in kept:
                target = output / file.path
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as sink:
                    async for piece in session.blobs.stream(f"{prefix}/{file.path}"):
                        sink.write(piece)
            typer.echo(f"{len(kept)} file(s) in {output}")
        elif as_json:
            print_json(list(kept))
        else:
            for file in kept:
                typer.echo(f"{file.size:>12}  {file.path}")

    with_session(work)


async def _attempt(session: Installation, trial_id: int, number: int | None) -> Attempt:
    from seatrial.errors import NotFound

    ended = [attempt for attempt in await session.store.attempts(trial_id) if attempt.result is not None]
    chosen = [attempt for attempt in ended if number in (None, attempt.number)]
    if not chosen:
        await session.store.trial(trial_id)
        raise NotFound(f"Trial {trial_id} has no {'such' if number else 'ended'} try yet.")
    return chosen[-1]


def _files(attempt: Attempt) -> tuple[StoredFile, ...]:
    return attempt.result.files if attempt.result is not None else ()


def _is_text(path: str) -> bool:
    return Path(path).suffix in (".log", ".txt", ".pane", "") or path.endswith((".json", ".jsonl"))


def printable(piece: bytes) -> str:
    """A sandbox's output for a terminal: control sequences could rewrite the screen, so they are shown, not obeyed."""
    text = piece.decode(errors="replace")
    return "".join(char if char in "\n\t" or char.isprintable() else f"\\x{ord(char):02x}" for char in text)
