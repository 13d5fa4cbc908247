"""Finds the tasks of a local run: at paths, in the library, in a dataset or in a registry."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from seatrial.domain.task import Task
from seatrial.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from seatrial.cli.backend.request import RunRequest
    from seatrial.wiring import Installation


def refuse_missing_module(agent: str) -> None:
    """Refuses an agent by import path (``pkg.mod:Class``) if Python cannot find its module."""
    module, colon, _ = agent.partition(":")
    if not colon:
        return
    try:
        found = find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise InvalidInput(
            f"Cannot find the module {module} of the agent {agent}.",
            field="agent",
            fix="Set its location: PYTHONPATH=FOLDER seatrial run ….",
        )


def refuse_nothing(request: RunRequest) -> None:
    if not request.paths and not request.library and request.dataset is None:
        raise InvalidInput(
            "Nothing to run.", field="paths", fix="Give a task, a folder of tasks, an archive, or a dataset with -d."
        )


async def choose_tasks(session: Installation, request: RunRequest) -> tuple[Task, ...]:
    """The tasks at the paths, in the library and in the dataset, narrowed by the selection."""
    from seatrial.engine.jobs.choice import choose

    refuse_nothing(request)
    taken = [task.digest for path in request.paths for task in await session.library.add(path)]
    if request.dataset is not None:
        await import_if_unknown(session, request.dataset)
    return await choose(session.store, (*taken, *request.library), request.dataset, request.selection)


async def import_if_unknown(session: Installation, name: str) -> None:
    """Imports an unregistered dataset from the configured registry."""
    from seatrial.wiring import import_dataset

    if not session.settings.registry:
        return
    try:
        await session.store.dataset(*split_name(name))
    except NotFound:
        await import_dataset(session, session.settings.registry, *split_name(name), at_the_machine=True)


def split_name(name: str) -> tuple[str, str | None]:
    """``NAME`` or ``NAME@VERSION``."""
    head, _, version = name.partition("@")
    return head, version or None
