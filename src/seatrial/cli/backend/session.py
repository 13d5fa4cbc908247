"""Opens the backend of a command: this machine's installation or, with ``--server``, a service.

``on_backend`` is for commands that work with both, ``on_installation`` for commands that need the installation.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, get_type_hints

import typer

from seatrial.cli.options import shown_as
from seatrial.errors import NotFound

if TYPE_CHECKING:
    from seatrial.cli.backend.backend import Backend
    from seatrial.client import AsyncClient
    from seatrial.settings import Settings
    from seatrial.wiring import Installation

NAMED_SERVER: ContextVar[str | None] = ContextVar("NAMED_SERVER", default=None)
"""The value of ``--server``, set by the command line's callback for one command."""


def read_settings() -> Settings:
    """The settings, or an error that names the invalid one."""
    from pydantic import ValidationError

    from seatrial.errors import InvalidInput
    from seatrial.settings import Settings

    try:
        found = Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        setting = name if name.isupper() else f"SEATRIAL_{name.upper()}"
        raise InvalidInput(f"{setting} is {first['input']!r}: {first['msg']}.", field=name) from error
    except ValueError as error:  # a seatrial.toml that is not TOML, an .env that is not text
        raise InvalidInput(f"The settings cannot be read: {error}.", field="settings") from error
    named = NAMED_SERVER.get()
    return found if named is None else found.model_copy(update={"server": named})


def refuse_server(command: str) -> None:
    """For commands that work on this machine only."""
    from seatrial.errors import InvalidInput

    if read_settings().server:
        raise InvalidInput(
            f"`seatrial {command}` works on this machine only, not on a service.",
            field="server",
            fix="Omit --server and unset SEATRIAL_SERVER.",
        )


@asynccontextmanager
async def open_session() -> AsyncIterator[Installation]:
    from seatrial.wiring import open_installation

    async with open_installation(read_settings(), at_the_machine=True) as installation:
        yield installation


@asynccontextmanager
async def open_client(settings: Settings) -> AsyncIterator[AsyncClient]:
    from seatrial.client import AsyncClient

    async with AsyncClient(settings.server, patience=600) as client:
        yield client


@asynccontextmanager
async def open_backend() -> AsyncIterator[Backend]:
    settings = read_settings()
    if settings.server:
        from seatrial.cli.backend.remote import RemoteBackend

        async with open_client(settings) as client:
            yield RemoteBackend.at(client, settings)
    else:
        from seatrial.cli.backend.local import LocalBackend

        async with open_session() as session:
            yield LocalBackend.at(session)


def on_backend[**P](command: Callable[Concatenate[Backend, P], Coroutine[Any, Any, int | None]]) -> Callable[P, None]:
    """Calls the command with the backend as its first argument. The command may return an exit status."""
    return _opening(open_backend, command)


def on_installation[**P](
    command: Callable[Concatenate[Installation, P], Coroutine[Any, Any, int | None]],
) -> Callable[P, None]:
    """The same for commands that work on this machine only."""
    return _opening(open_session, command)


def _opening(
    opened: Callable[[], AbstractAsyncContextManager[Any]], command: Callable[..., Any]
) -> Callable[..., None]:
    def call(**given: Any) -> None:
        async def run() -> int | None:
            async with opened() as first:
                try:
                    status: int | None = await command(first, **given)
                except NotFound as error:
                    raise await _with_newest_job(first, error) from error
                return status

        if status := asyncio.run(run()):
            raise typer.Exit(status)

    # The types of first arguments are imported by type checkers only.
    known = {**command.__globals__, "Backend": Any, "Installation": Any}
    hints = get_type_hints(command, known, include_extras=True)
    _, *parameters = signature(command).parameters.values()
    return shown_as(call, command, [each.replace(annotation=hints[each.name]) for each in parameters])


async def _with_newest_job(first: Any, error: NotFound) -> NotFound:
    """Says which jobs there are, if the error is about one that does not exist."""
    if error.fix or not error.message.startswith("There is no job") or not hasattr(first, "runs"):
        return error
    newest = await first.jobs.page(1, None)
    last = f"The newest is {newest[0].id}; `seatrial job list` lists them." if newest else "There are no jobs yet."
    return NotFound(error.message, fix=last)


def print_json(value: Any) -> None:
    """Prints one JSON document and nothing else."""
    import json

    from pydantic import BaseModel
    from pydantic_core import to_jsonable_python

    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else to_jsonable_python(value)
    typer.echo(json.dumps(plain, indent=2))
