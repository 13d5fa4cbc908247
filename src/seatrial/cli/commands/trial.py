"""``seatrial trial``: show the result, logs and files of a trial."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import print_json, with_backend
from seatrial.cli.options import AsJson, TrialId

if TYPE_CHECKING:
    from seatrial.cli.backend.backend import Backend

app = typer.Typer(help="Show the result, logs and files of a trial.", no_args_is_help=True, rich_markup_mode=None)
TryNumber = Annotated[int | None, typer.Option("--try", min=1, help="Number of the try. Default: the last one.")]


@app.command()
def show(trial_id: TrialId, as_json: AsJson = False) -> None:
    """Show a trial: its outcome, rewards, tests, timings, usage, lock and earlier tries."""

    async def work(backend: Backend) -> None:
        from seatrial.cli.view.trial_text import print_trial

        row, attempts = await backend.trials.get(trial_id)
        if as_json:
            print_json({"trial": row.trial, "result": row.result, "tries": attempts})
            return
        print_trial(row, attempts)

    with_backend(work)


@app.command()
def logs(trial_id: TrialId, number: TryNumber = None) -> None:
    """Print the logs of a trial in full: the agent's, the verifier's, Harbor's."""

    async def work(backend: Backend) -> None:
        kept = await backend.trials.files(trial_id, number)
        for file in kept.logs:
            typer.echo(f"==> {file.path} <==")
            async for piece in backend.trials.read(kept, file):
                typer.echo(printable(piece), nl=False)
            typer.echo()
        if not kept.logs:
            typer.echo("This try left no logs.", err=True)

    with_backend(work)


@app.command()
def files(
    trial_id: TrialId,
    path: Annotated[str | None, typer.Argument(help="File to print. Default: list the files.")] = None,
    number: TryNumber = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Directory to copy all files into.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the files of a trial, print one, or copy all of them."""

    async def work(backend: Backend) -> None:
        from seatrial.cli.view.trial_text import left_out_lines
        from seatrial.engine.trials.save_files import kept_name
        from seatrial.ports.blobs import has_room

        kept = await backend.trials.files(trial_id, number)
        if path is not None:
            async for piece in backend.trials.read(kept, kept.find(path)):
                typer.get_binary_stream("stdout").write(piece)
        elif output is not None:
            for file in kept.files:
                target = output / (file.path if has_room(file.path) else kept_name(file))
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as sink:
                    async for piece in backend.trials.read(kept, file):
                        sink.write(piece)
            typer.echo(f"{len(kept.files)} file(s) in {output}")
        elif as_json:
            print_json(list(kept.files))
        else:
            for file in kept.files:
                typer.echo(f"{file.size:>12}  {file.path}")
            for line in left_out_lines(kept.left_out):
                typer.echo(line.strip(), err=True)

    with_backend(work)


def printable(piece: bytes) -> str:
    """Text from a sandbox, made safe for a terminal: control sequences are shown, not obeyed."""
    text = piece.decode(errors="replace")
    return "".join(char if char in "\n\t" or char.isprintable() else f"\\x{ord(char):02x}" for char in text)
