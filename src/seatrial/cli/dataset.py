"""``seatrial dataset``: named, versioned lists of tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.session import print_json, with_session

if TYPE_CHECKING:
    from seatrial.domain.task import Dataset, Task
    from seatrial.wiring import Installation

app = typer.Typer(help="Named, versioned lists of tasks.", no_args_is_help=True, rich_markup_mode=None)
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="NAME or NAME@VERSION.")],
    paths: Annotated[list[Path], typer.Argument(help="Tasks: directories, folders of tasks, archives.")],
    description: Annotated[str, typer.Option(help="What it is for.")] = "",
) -> None:
    """Register tasks under a name and a version. A version is written once and never changes."""

    async def work(session: Installation) -> None:
        tasks = [task for path in paths for task in await session.library.add(path)]
        dataset = await _save(session, name, tasks, description)
        typer.echo(f"{dataset.id}: {len(dataset.tasks)} task(s)")

    with_session(work)


@app.command("import")
def import_(
    name: Annotated[str, typer.Argument(help="NAME or NAME@VERSION in the registry.")],
    registry: Annotated[str | None, typer.Option(help="Harbor registry file: a path or URL.")] = None,
) -> None:
    """Import a dataset from a registry file in Harbor's format."""

    async def work(session: Installation) -> None:
        dataset = await _import(session, name, registry or session.settings.registry)
        typer.echo(f"{dataset.id}: {len(dataset.tasks)} task(s)")

    with_session(work)


@app.command("list")
def list_datasets(as_json: JsonFlag = False) -> None:
    """List the registered datasets."""

    async def work(session: Installation) -> None:
        datasets = await session.store.datasets()
        if as_json:
            print_json(
                [{"id": found.id, "tasks": len(found.tasks), "description": found.description} for found in datasets]
            )
            return
        if not datasets:
            typer.echo("No dataset yet. Make one with: seatrial dataset create NAME PATH…")
        for found in datasets:
            typer.echo(f"{found.id:<40} {len(found.tasks):>5} tasks  {found.description}")

    with_session(work)


@app.command()
def show(name: Annotated[str, typer.Argument(help="NAME or NAME@VERSION.")], as_json: JsonFlag = False) -> None:
    """Show the tasks of a dataset."""

    async def work(session: Installation) -> None:
        dataset = await session.store.dataset(*split_name(name))
        if as_json:
            print_json(dataset)
            return
        typer.echo(f"{dataset.id}: {len(dataset.tasks)} task(s)  {dataset.description}")
        for ref in dataset.tasks:
            typer.echo(f"  {ref.name:<40} {ref.digest[:19]}")

    with_session(work)


async def dataset_tasks(session: Installation, name: str) -> list[Task]:
    """The tasks of a registered dataset; else of the configured registry, which is imported then."""
    from seatrial.errors import NotFound

    try:
        dataset = await session.store.dataset(*split_name(name))
    except NotFound:
        if not session.settings.registry:
            raise
        dataset = await _import(session, name, session.settings.registry)
    return [await session.store.task(ref.digest) for ref in dataset.tasks]


def split_name(name: str) -> tuple[str, str | None]:
    head, _, version = name.partition("@")
    return head, version or None


async def _import(session: Installation, name: str, registry: str) -> Dataset:
    from seatrial.errors import InvalidInput
    from seatrial.wiring import registry_dataset

    if not registry:
        raise InvalidInput(
            f"No registry is configured to look {name} up in.", field="registry", fix="Give --registry FILE."
        )
    async with registry_dataset(registry, *split_name(name)) as found:
        tasks = [task for path in found.paths for task in await session.library.add(path)]
        return await _save(session, f"{found.name}@{found.version}", tasks, found.description)


async def _save(session: Installation, name: str, tasks: list[Task], description: str) -> Dataset:
    from seatrial.domain.task import Dataset, TaskRef
    from seatrial.errors import InvalidInput

    head, version = split_name(name)
    names = [task.name for task in tasks]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"Several tasks have the same name: {', '.join(doubled)}.", field="tasks")
    refs = tuple(TaskRef(name=task.name, digest=task.digest) for task in sorted(tasks, key=lambda task: task.name))
    dataset = Dataset(name=head, version=version or "1", description=description, tasks=refs)
    return await session.store.save_dataset(dataset, session.clock())
