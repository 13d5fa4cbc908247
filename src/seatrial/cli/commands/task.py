"""``seatrial task``: add, show and pack tasks."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import on_backend, on_installation, print_json
from seatrial.cli.options import AsJson, SomePaths
from seatrial.cli.plain_help import Commands
from seatrial.cli.view.columns import Column, print_table
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.cli.backend.backend import Backend
    from seatrial.domain.task import Task
    from seatrial.shapes.tasks import TaskItem
    from seatrial.wiring import Installation

_LIST = (
    Column("task", least=16),
    Column("format", rank=2),
    Column("difficulty", rank=3),
    Column("category", least=12, rank=4),
    Column("digest", rank=1),
)
app = Commands(help="Add, list, show and pack tasks.")


@app.command()
@on_backend
async def add(
    backend: Backend,
    paths: SomePaths,
    check: Annotated[bool, typer.Option("--check", help="Validate only; add nothing to the library.")] = False,
    as_json: AsJson = False,
) -> int:
    """Validate tasks and add them to the library. Reports all problems at once, with file, line and fix."""
    inspections = [found for path in paths for found in await backend.tasks.inspect(path)]
    rejected = any(inspection.task is None for inspection in inspections)
    known = {} if check or rejected else {task.digest: task for task in await backend.tasks.all()}
    if not check and not rejected:
        for path in paths:
            await backend.tasks.add(path)
    if as_json:
        print_json([inspection.model_dump(mode="json") for inspection in inspections])
        return 2 if rejected else 0
    for inspection in inspections:
        say(f"{inspection.name}: {_verdict(inspection.task, check, rejected, known)}")
        for problem in inspection.problems:
            say(f"  {problem.severity}: {problem}")
    return 2 if rejected else 0


def _verdict(task: Task | None, check: bool, rejected: bool, known: Collection[str]) -> str:
    """All tasks are added, or none."""
    if check:
        return "invalid" if task is None else "valid"
    if task is None:
        return "rejected"
    return "valid, not added" if rejected else "already in library" if task.digest in known else "added"


@app.command("list")
@on_backend
async def list_tasks(backend: Backend, as_json: AsJson = False) -> None:
    """List the tasks of the library."""
    tasks = await backend.tasks.all()
    if as_json:
        print_json([_row(task) for task in tasks])
        return
    if not tasks:
        say("No tasks. Add some with: seatrial task add PATH…")
        return
    ordered = sorted(tasks, key=lambda task: task.name)
    print_table(_LIST, [(task.name, task.format, task.difficulty, task.category, task.digest[:19]) for task in ordered])


@app.command()
@on_backend
async def show(
    backend: Backend,
    name: Annotated[str, typer.Argument(metavar="TASK", help="Name or digest of a task.")],
    as_json: AsJson = False,
) -> None:
    """Show one task: its instruction, limits and resources."""
    task = await backend.tasks.get(name)
    if as_json:
        print_json(task)
        return
    for field, value in _row(task).items():
        say(f"{field:<12} {value}")
    say(f"\n{task.instruction.strip() or '(instructions are in the steps: ' + ', '.join(task.steps) + ')'}")


@app.command()
@on_installation
async def pack(
    installation: Installation,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A task or a folder of tasks.")],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="PATH", help="Folder for the ZIP files; or NAME.zip, for one task."),
    ] = Path(),
) -> None:
    """Pack tasks as ZIP files for upload. The same content always gives the same bytes."""
    from seatrial.engine.tasks.library import refuse_invalid

    refuse_invalid(await installation.library.inspect(path))
    as_file = output.suffix == ".zip" and not output.is_dir()
    for archive in installation.library.pack(path, output, as_file=as_file):
        say(str(archive))


def _row(task: Task | TaskItem) -> dict[str, object]:
    return {
        "name": task.name,
        "digest": task.digest,
        "format": task.format,
        "category": task.category,
        "difficulty": task.difficulty,
        "tags": ", ".join(task.tags),
        "steps": ", ".join(task.steps) or "single",
        "agent limit": f"{task.agent_timeout_sec:g} s" if task.agent_timeout_sec else "none",
        "resources": f"{task.resources.cpus or 'default'} CPU, {task.resources.memory_mb or 'default'} MB",
        "image": task.docker_image or "built from its Dockerfile",
    }
