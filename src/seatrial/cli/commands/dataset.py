"""``seatrial dataset``: named, versioned lists of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import on_backend, print_json
from seatrial.cli.options import AsJson, Dataset, SomePaths, split_name
from seatrial.cli.plain_help import Commands
from seatrial.cli.view.columns import Column, print_table
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.cli.backend.backend import Backend

_DATASETS = (
    Column("dataset", least=16),
    Column("tasks", right=True),
    Column("description", least=16, prose=True, rank=1),
)
_TASKS = (Column("task", least=16), Column("digest", rank=1))
app = Commands(help="Manage datasets: named, versioned lists of tasks.")


@app.command()
@on_backend
async def create(
    backend: Backend,
    name: Dataset,
    paths: SomePaths,
    description: Annotated[str, typer.Option(metavar="TEXT", help="Description of the dataset.")] = "",
) -> None:
    """Register tasks under a name and a version. A version never changes."""
    from seatrial.cli.view.figures import plural
    from seatrial.engine.jobs.choice import refuse_doubles

    tasks = [task for path in paths for task in await backend.tasks.add(path)]
    refuse_doubles(tasks)
    head, version = split_name(name)
    dataset = await backend.datasets.save(head, version or "1", tasks, description)
    say(f"{dataset.id}: {plural(len(dataset.tasks), 'task')}")


@app.command("import")
@on_backend
async def import_(
    backend: Backend,
    name: Dataset,
    registry: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Harbor registry file: a path or URL. Default: the configured one."),
    ] = None,
) -> None:
    """Import a dataset from a Harbor registry file."""
    from seatrial.cli.view.figures import plural

    dataset = await backend.datasets.take_in(*split_name(name), registry)
    say(f"{dataset.id}: {plural(len(dataset.tasks), 'task')}")


@app.command("list")
@on_backend
async def list_datasets(backend: Backend, as_json: AsJson = False) -> None:
    """List datasets."""
    datasets = await backend.datasets.all()
    if as_json:
        print_json([{"id": found.id, "tasks": found.tasks, "description": found.description} for found in datasets])
        return
    if not datasets:
        say("No datasets. Create one with: seatrial dataset create NAME PATH…")
        return
    print_table(_DATASETS, [(found.id, str(found.tasks), found.description) for found in datasets])


@app.command()
@on_backend
async def show(backend: Backend, name: Dataset, as_json: AsJson = False) -> None:
    """Show the tasks of a dataset."""
    from seatrial.cli.view.figures import plural

    dataset = await backend.datasets.get(*split_name(name))
    if as_json:
        print_json(dataset)
        return
    say(f"{dataset.id}: {plural(len(dataset.tasks), 'task')}  {dataset.description}")
    print_table(_TASKS, [(ref.name, ref.digest[:19]) for ref in dataset.tasks])
