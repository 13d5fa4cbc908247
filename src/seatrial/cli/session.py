"""What every command needs: the installation, opened for the time of one call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from seatrial.settings import Settings
    from seatrial.wiring import Installation


def read_settings() -> Settings:
    """The settings, or one sentence that names what cannot be understood."""
    from pydantic import ValidationError

    from seatrial.errors import InvalidInput
    from seatrial.settings import Settings

    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "settings"
        setting = name if name.isupper() else f"SEATRIAL_{name.upper()}"
        raise InvalidInput(f"{setting} is {first['input']!r}: {first['msg']}.", field=name) from error
    except ValueError as error:  # a seatrial.toml that is not TOML, an .env that is not text
        raise InvalidInput(f"The settings cannot be read: {error}.", field="settings") from error


@asynccontextmanager
async def open_session() -> AsyncIterator[Installation]:
    from seatrial.wiring import open_installation

    async with open_installation(read_settings()) as installation:
        yield installation


def with_session[T](work: Callable[[Installation], Coroutine[Any, Any, T]]) -> T:
    """Runs one coroutine with an open installation."""

    async def run() -> T:
        async with open_session() as session:
            return await work(session)

    return asyncio.run(run())


def print_json(value: Any) -> None:
    """One JSON document and nothing else."""
    import json

    from pydantic import BaseModel
    from pydantic_core import to_jsonable_python

    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else to_jsonable_python(value)
    typer.echo(json.dumps(plain, indent=2))
