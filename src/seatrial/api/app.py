"""The ASGI application. A request passes the gates from the outside in, then reaches its router.

::

    remove keys from the URL → request log and metrics → size and pace → authentication and roles → routers
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from seatrial import __version__
from seatrial.api.answers import add_error_handlers
from seatrial.api.compat import tbench_execute, tbench_runner
from seatrial.api.context import Service
from seatrial.api.gates.access import check_access
from seatrial.api.gates.guard import Guard
from seatrial.api.gates.headers import CrossOrigin, SecureHeaders
from seatrial.api.gates.key_intake import KeyIntake
from seatrial.api.gates.limits import DiskRoomCheck, Limits
from seatrial.api.gates.request_log import RequestLog
from seatrial.api.routes import (
    catalogue,
    charts,
    comparisons,
    credentials,
    datasets,
    events,
    exports,
    health,
    jobs,
    leaderboard,
    links,
    metrics,
    reports,
    tasks,
    triage,
    trial_files,
    trials,
    workers,
)
from seatrial.api.routes.docs import add_docs
from seatrial.api.routes.metrics import Metrics, counting
from seatrial.api.routes.page import Page
from seatrial.api.routes.router import take_routes
from seatrial.redact import Redactor
from seatrial.settings import Settings
from seatrial.system.disk import Disk
from seatrial.wiring import open_installation, recover_in_background

_PARTS = (
    jobs,
    trials,
    events,
    tasks,
    workers,
    health,
    trial_files,
    comparisons,
    reports,
    triage,
    links,
    exports,
    charts,
    leaderboard,
    datasets,
    catalogue,
    credentials,
    metrics,
    tbench_runner,
    tbench_execute,
)
"""Frequent routes come first: a path is matched against one route after another."""


def create_app(settings: Settings, redactor: Redactor | None = None) -> FastAPI:
    """Opens nothing; the server does that when it starts. ``redactor`` learns the keys that arrive with requests."""
    numbers = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_installation(settings) as installation:
            access = await check_access(settings, installation.store.tokens, installation.clock())
            app.state.service = service = Service.of(installation, access)
            async with (
                recover_in_background(installation),
                counting(numbers, installation.store.events) as app.state.event_tail,
            ):
                yield
            await service.identities.close()

    app = FastAPI(
        title="Seatrial",
        version=__version__,
        summary="Runs Terminal-Bench tasks. Each attempt has its own sandbox and is graded by the task's own tests.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.metrics = numbers
    app.state.redactor = redactor or Redactor()
    add_error_handlers(app)
    # The middleware added last is the outermost.
    app.add_middleware(DiskRoomCheck, disk=Disk(settings.home, settings.disk_low_water_mb))
    app.add_middleware(Guard, settings=settings)
    app.add_middleware(Limits, settings=settings)
    app.add_middleware(RequestLog, numbers=numbers)
    app.add_middleware(KeyIntake, learn=app.state.redactor.learn)
    app.add_middleware(SecureHeaders)
    app.add_middleware(CrossOrigin, settings=settings)
    take_routes(app, (part.router for part in _PARTS))
    add_docs(app)
    app.state.page = app.router.default = Page()
    return app
