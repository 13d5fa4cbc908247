"""What every command needs: the installation, opened for the time of one call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from seatrial.wiring import Installation


@asynccontextmanager
async def open_session() -> AsyncIterator[Installation]:
    from seatrial.settings import Settings
    from seatrial.wiring import open_installation

    async with open_installation(Settings()) as installation:
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
