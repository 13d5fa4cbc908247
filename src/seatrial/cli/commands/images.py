"""``seatrial images``: build, pull, push and prune the images of sandboxes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import on_installation, print_json, read_settings
from seatrial.cli.options import AsJson, DatasetName, DryRun, TaskPaths, with_groups
from seatrial.cli.plain_help import Commands
from seatrial.cli.view.columns import Column, print_table
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.domain.task import Task
    from seatrial.sandboxes.images.assembly import Images
    from seatrial.sandboxes.images.batch import Bring, CatalogueLine, LogFor, Outcome
    from seatrial.sandboxes.images.image import Image, ImageRequest
    from seatrial.wiring import Installation

_LIST = (
    Column("image", least=24),
    Column("digest", rank=4),
    Column("size", right=True),
    Column("source", rank=3),
    Column("last used", rank=1),
    Column("task", least=12, rank=2),
)
app = Commands(help="Manage the images of sandboxes.")
SandboxName = Annotated[str, typer.Option("--sandbox", metavar="SANDBOX", help="Whose images: oci or docker.")]


@app.command("list")
def list_images(sandbox: SandboxName = "oci", as_json: AsJson = False) -> None:
    """List local images, the most recently used first."""
    from seatrial.sandboxes.images.batch import catalogue

    images = _images(sandbox)
    lines = asyncio.run(catalogue(images.store, images.uses))
    if as_json:
        print_json(lines)
        return
    if not lines:
        say("No images. Build some with: seatrial images build PATH…")
        return
    print_table(_LIST, [_cells(line) for line in lines])


def _cells(line: CatalogueLine) -> tuple[str, ...]:
    used = line.used_at.astimezone().strftime("%Y-%m-%d %H:%M") if line.used_at else "never"
    return (line.name or "(no name)", line.digest[7:19], _size(line.size_bytes), line.source, used, line.task)


@dataclass(frozen=True)
class Batch:
    """Options of the commands that build images of tasks."""

    paths: TaskPaths = None
    dataset: DatasetName = None
    force: Annotated[bool, typer.Option("--force", help="Build from the Dockerfile even if an image is pinned.")] = (
        False
    )
    jobs: Annotated[int, typer.Option("-n", "--jobs", min=1, help="Images to build at the same time.")] = 2
    sandbox: SandboxName = "oci"
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show the build output.")] = False
    as_json: AsJson = False


@app.command()
@with_groups
@on_installation
async def build(installation: Installation, batch: Batch) -> None:
    """Pull or build the images of tasks before trials need them."""
    requests = await _requests(installation, batch)
    await _bring(_images(batch.sandbox).resolver.resolve, requests, batch)


@app.command()
@with_groups
@on_installation
async def push(
    installation: Installation,
    batch: Batch,
    registry: Annotated[
        str, typer.Option(metavar="REPOSITORY", help="Where to push to. Default: the configured one.")
    ] = "",
) -> None:
    """Publish the images of tasks as REPOSITORY:TASK-VERSION (or :TASK), where trials look for them."""
    from seatrial.sandboxes.images.batch import Publisher

    settings = installation.settings
    publisher = Publisher(_images(batch.sandbox), registry, settings.docker_registry, settings.default_registry)
    requests = await _requests(installation, batch)
    for request in requests:
        publisher.name_for(request)  # check the registry before building
    await _bring(publisher.publish, requests, batch)


@app.command()
def bootstrap(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="IMAGE", help="debian:bookworm-slim (default), debian:12, …")
    ] = None,
    sandbox: SandboxName = "oci",
) -> None:
    """Create Debian base images from the package mirror, for machines without access to a registry."""
    images = _images(sandbox)
    _each(names or ["debian:bookworm-slim"], lambda name: images.bootstrap.make(name, images.store, _echo))


@app.command()
def pull(
    names: Annotated[list[str], typer.Argument(metavar="IMAGE", help="Images to pull.")],
    sandbox: SandboxName = "oci",
) -> None:
    """Pull images from registries."""
    images = _images(sandbox)
    _each(names, lambda name: images.store.pull(name, _echo))


def _each(names: Sequence[str], bring: Callable[[str], Awaitable[Image]]) -> None:
    from seatrial.sandboxes.images.references import parse

    async def work() -> None:
        for name in names:
            say(f"{name}  {(await bring(str(parse(name)))).digest}")

    asyncio.run(work())


@app.command()
def prune(
    everything: Annotated[bool, typer.Option("--all", help="Remove every image that no sandbox uses.")] = False,
    dry_run: DryRun = False,
    sandbox: SandboxName = "oci",
) -> None:
    """Remove untagged images, and the least recently used ones while free disk space is below the limit."""
    from seatrial.cli.view.figures import plural

    report = asyncio.run(_images(sandbox).pruner.prune(everything=everything, dry_run=dry_run))
    for image in report.removed:
        say(f"{image.references[0] if image.references else image.digest}  {_size(image.size_bytes)}")
    verb = "would be removed" if dry_run else "removed"
    kept = f"; {len(report.kept_in_use)} in use and kept" if report.kept_in_use else ""
    say(f"{plural(len(report.removed), 'image')} {verb}{kept}; {_size(report.free_bytes)} free")


def _images(sandbox: str) -> Images:
    from seatrial.wiring import images_of

    return images_of(read_settings(), sandbox)


async def _requests(installation: Installation, batch: Batch) -> list[ImageRequest]:
    from seatrial.cli.backend.local import import_if_unknown
    from seatrial.engine.jobs.choice import dataset_tasks
    from seatrial.errors import InvalidInput
    from seatrial.sandboxes.images.batch import request_for

    library = installation.library
    tasks: list[Task] = [task for path in batch.paths or () for task in await library.add(path)]
    if batch.dataset is not None:
        await import_if_unknown(installation, batch.dataset)
        tasks += await dataset_tasks(installation.store.tasks, batch.dataset)
    if not tasks:
        raise InvalidInput("No task given.", fix="Give a path, or a dataset with -d NAME.")
    return [request_for(task, await library.directory(task), force_build=batch.force) for task in tasks]


async def _bring(bring: Bring, requests: Sequence[ImageRequest], batch: Batch) -> None:
    from seatrial.sandboxes.images.batch import bring_all

    with _progress(len(requests), batch.as_json) as listener:
        outcomes = await bring_all(bring, requests, batch.jobs, listener, _log_for(batch.verbose))
    if batch.as_json:
        print_json([_as_json(outcome) for outcome in outcomes])
    failed = [outcome for outcome in outcomes if outcome.problem]
    for outcome in failed:
        say(f"{outcome.task}: {outcome.problem}", err=True)
    if failed:
        say(f"{len(failed)} of {len(outcomes)} failed", err=True)
        raise typer.Exit(1)


@contextmanager
def _progress(total: int, quiet: bool) -> Iterator[Callable[[Outcome], None]]:
    """A bar on a terminal, a line per image elsewhere, nothing with JSON."""
    import sys

    if quiet:
        yield lambda outcome: None
        return
    if not sys.stderr.isatty():
        yield _tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("images"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("images", total=total)

        def show(outcome: Outcome) -> None:
            _tell(outcome)
            progress.advance(bar)

        yield show


def _tell(outcome: Outcome) -> None:
    if outcome.image is not None:
        about = f"{outcome.image.reference}  {outcome.image.provenance}  {outcome.seconds:.1f} s"
        say(f"{outcome.task:<32} {about}")


def _as_json(outcome: Outcome) -> dict[str, object]:
    image = outcome.image
    return {
        "task": outcome.task,
        "reference": image.reference if image else None,
        "digest": image.digest if image else None,
        "source": image.provenance if image else None,
        "log": str(image.build_log) if image and image.build_log else None,
        "problem": outcome.problem or None,
        "seconds": round(outcome.seconds, 3),
    }


def _log_for(verbose: bool) -> LogFor:
    """Where the output of each build goes. The cache keeps the log in any case."""
    if not verbose:
        return lambda task: lambda text: None
    return lambda task: lambda text: _echo("".join(f"{task} | {line}\n" for line in text.splitlines()))


def _echo(text: str) -> None:
    say(text, nl=False, err=True)


def _size(size: int) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
