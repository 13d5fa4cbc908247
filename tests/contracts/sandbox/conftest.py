"""Fixtures of the sandbox suite: one engine for the run, one shared sandbox per kind, and fresh ones on demand."""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from harbor.environments.base import BaseEnvironment

from tests.contracts.sandbox.differences import DIFFERENCES, difference
from tests.contracts.sandbox.gvisor_part import EVERYTHING, GVISOR, PART
from tests.contracts.sandbox.kinds import KINDS, Kind, Place, Wish
from tests.engine import Engine
from tests.engine_fixture import container_engine, image_cache, run_dir

__all__ = ["container_engine", "image_cache", "run_dir"]

MakeSandbox = Callable[..., Awaitable[BaseEnvironment]]

_HERE = Path(__file__).parent
_EXCLUDED = pytest.StashKey[int]()
_PARAMS = [
    pytest.param("oci", marks=pytest.mark.sandbox),
    pytest.param("oci:runsc", marks=pytest.mark.sandbox),
    pytest.param("docker", marks=pytest.mark.engine),
    pytest.param("harbor:docker", marks=pytest.mark.engine),
]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept, excluded, left_out = [], [], []
    for item in items:
        if _HERE not in item.path.parents:
            kept.append(item)
            continue
        # Sandboxes live longer than one test, so all tests share the loop that they were started on.
        if inspect.iscoroutinefunction(getattr(item, "function", None)):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
        sandbox = getattr(item, "callspec", None) and item.callspec.params.get("kind")  # type: ignore[attr-defined]
        entry = difference(sandbox, item.originalname) if sandbox else None  # type: ignore[attr-defined]
        if entry is not None and entry.how == "excluded":
            excluded.append(item)
            continue
        if sandbox == GVISOR and item.originalname not in PART and not os.environ.get(EVERYTHING):  # type: ignore[attr-defined]
            left_out.append(item)
            continue
        if entry is not None:
            item.add_marker(pytest.mark.xfail(strict=True, reason=entry.why))
        kept.append(item)
    if excluded or left_out:
        config.hook.pytest_deselected(items=[*excluded, *left_out])
        items[:] = kept
    config.stash[_EXCLUDED] = len(excluded)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not config.stash.get(_EXCLUDED, 0):
        return
    terminalreporter.section("known differences of other sandboxes, not run")
    for entry in DIFFERENCES:
        if entry.how == "excluded":
            terminalreporter.line(f"{entry.sandbox}: {entry.promise}: {entry.why}")


@pytest.fixture(scope="session", params=_PARAMS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def place(
    kind: Kind, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, image_cache: Path
) -> AsyncIterator[Place]:
    directory = tmp_path_factory.mktemp(kind.name.replace(":", "-"))
    if not kind.needs_engine:
        yield Place(directory, image_cache)
        return
    engine: Engine = request.getfixturevalue("container_engine")
    before = os.environ.get("DOCKER_HOST")
    # Stock Harbor calls the docker client, which is told by the environment only.
    os.environ["DOCKER_HOST"] = engine.host
    image = None if kind.ours else await _image_for_stock(directory, image_cache, engine)
    yield Place(directory, image_cache, engine, image)
    if before is None:
        del os.environ["DOCKER_HOST"]
    else:
        os.environ["DOCKER_HOST"] = before


async def _image_for_stock(directory: Path, cache: Path, engine: Engine) -> str:
    """Has our own sandbox resolve the suite's image in the engine, and gives its name there."""
    place = Place(directory / "image", cache, engine)
    sandbox = KINDS["docker"].create(place, Wish())
    await sandbox.start(force_build=False)
    try:
        reference = sandbox.facts.image  # type: ignore[attr-defined]
        assert isinstance(reference, str)
        return reference
    finally:
        await sandbox.stop(delete=True)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sandbox(kind: Kind, place: Place) -> AsyncIterator[BaseEnvironment]:
    """A running sandbox that tests share; they leave no processes behind and use paths of their own."""
    wish = Wish(env={"FROM_TASK": "of the task", "OVERRIDDEN": "task"}, persistent_env={"FROM_JOB": "of the job"})
    shared = kind.create(place, wish)
    await shared.start(force_build=False)
    yield shared
    await kind.end(shared)


@pytest_asyncio.fixture(loop_scope="session")
async def make_sandbox(kind: Kind, place: Place) -> AsyncIterator[MakeSandbox]:
    """Starts sandboxes for one test alone."""
    started: list[BaseEnvironment] = []

    async def make(wish: Wish | None = None) -> BaseEnvironment:
        fresh = kind.create(place, wish or Wish())
        started.append(fresh)
        await fresh.start(force_build=False)
        return fresh

    yield make
    for fresh in started:
        await kind.end(fresh)
