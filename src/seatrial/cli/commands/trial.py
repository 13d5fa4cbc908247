"""``seatrial trial``: shows a trial, its logs and its files."""

from __future__ import annotations

import codecs
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import on_backend, print_json
from seatrial.cli.options import AsJson, TrialId
from seatrial.cli.plain_help import Commands
from seatrial.cli.view.columns import Column, print_table
from seatrial.cli.view.say import say
from seatrial.errors import InvalidInput

if TYPE_CHECKING:
    from seatrial.cli.backend.backend import Backend
    from seatrial.domain.result import StoredFile
    from seatrial.engine.trials.trial_files import KeptFiles

app = Commands(help="Show what happened in a trial.")
_FILES = (Column("bytes", right=True), Column("file", least=24))
TryNumber = Annotated[
    int | None, typer.Option("--try", metavar="N", min=1, help="Number of the try. Default: the last one.")
]


@app.command()
@on_backend
async def show(backend: Backend, trial_id: TrialId, as_json: AsJson = False) -> None:
    """Show a trial: its outcome, rewards, tests, timings, usage, lock and earlier tries."""
    from seatrial.cli.view.trial_text import print_trial
    from seatrial.shapes.trials import trial_fields

    row, tries = await backend.trials.get(trial_id)
    if as_json:
        print_json({"trial": trial_fields(row.trial), "result": row.result, "tries": tries})
        return
    print_trial(row, tries)


@app.command()
@on_backend
async def logs(
    backend: Backend,
    trial_id: TrialId,
    number: TryNumber = None,
    raw: Annotated[bool, typer.Option("--raw", help="Print every log in full.")] = False,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Print what happens until the trial ends.")] = False,
    file: Annotated[str | None, typer.Option("--file", metavar="FILE", help="Print this log in full.")] = None,
) -> int | None:
    """Show what happened in a trial: its phases, the agent's steps, and why it ended as it did."""
    from seatrial.cli.commands.trial_logs import print_follow, print_log, print_raw, print_timeline

    if follow:
        return await print_follow(backend, trial_id)
    if raw:
        await print_raw(backend, trial_id, number)
    elif file is not None:
        await print_log(backend, trial_id, number, file)
    else:
        await print_timeline(backend, trial_id, number)
    return None


@app.command()
@on_backend
async def files(
    backend: Backend,
    trial_id: TrialId,
    path: Annotated[
        str | None, typer.Argument(metavar="FILE", help="File to print. Without it, the files are listed.")
    ] = None,
    number: TryNumber = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Folder to copy all files into.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the stored files of a trial, print one, or copy all of them."""
    from seatrial.cli.view.figures import plural
    from seatrial.cli.view.trial_text import left_out_lines
    from seatrial.engine.trials.save_files import kept_name
    from seatrial.ports.blobs import has_room

    kept = await backend.trials.files(trial_id, number)
    if path is not None:
        await _print_file(backend, kept, kept.find(path))
    elif output is not None:
        for file in kept.files:
            target = _inside(output, file.path if has_room(file.path) else kept_name(file))
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as sink:
                async for piece in backend.trials.read(kept, file):
                    sink.write(piece)
        say(f"{plural(len(kept.files), 'file')} in {output}")
    elif as_json:
        print_json(list(kept.files))
    else:
        print_table(_FILES, [(str(file.size), file.path) for file in kept.files])
        for line in left_out_lines(kept.left_out):
            say(line.strip(), err=True)


async def _print_file(backend: Backend, kept: KeptFiles, file: StoredFile) -> None:
    """Writes the bytes unchanged to a file or a pipe. On a terminal, control characters are escaped."""
    out = typer.get_binary_stream("stdout")
    text = codecs.getincrementaldecoder("utf-8")("replace")
    async for piece in backend.trials.read(kept, file):
        if out.isatty():
            say(text.decode(piece), nl=False)
        else:
            out.write(piece)


def _inside(folder: Path, path: str) -> Path:
    """The names of the files come from a service, which may not be trusted."""
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts or "\0" in path:
        raise InvalidInput(f"The file {path!r} would be outside of {folder}.", field="output")
    return folder / parts
