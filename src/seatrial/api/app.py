"""The application: what is asked passes the gates from the outside in, then finds its router.

::

    keys taken out of the URL → request log and metrics → size and pace → who is it, may they → routers
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from seatrial import __version__
from seatrial.api import health
from seatrial.api.answers import add_error_handlers
from seatrial.api.context import Service
from seatrial.settings import Settings
from seatrial.wiring import open_installation


def create_app(settings: Settings) -> FastAPI:
    """Nothing is opened before the server starts it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_installation(settings) as installation:
            app.state.service = Service(installation)
            yield

    app = FastAPI(
        title="Seatrial",
        version=__version__,
        summary="Runs Terminal-Bench tasks: every attempt in its own sandbox, graded by the task's own tests.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    add_error_handlers(app)
    app.include_router(health.router)
    return app
