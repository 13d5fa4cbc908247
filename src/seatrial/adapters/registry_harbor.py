"""Datasets from a registry file in Harbor's format: a list of ``{name, version, description, tasks}``.

Called through ``wiring`` when ``-d name@version`` is not a dataset of this installation. Each task has a ``name`` and a
``path``; with a ``git_url`` the path is inside that repository at ``git_commit_id``, without one it is a folder beside
the registry file. A registry is untrusted: paths must stay inside their repository, and only Git's plain protocols are
used.
"""

from __future__ import annotations

import asyncio
import shutil
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from seatrial.adapters.registry_reach import Reach, SameHostOnly
from seatrial.domain.frozen import Frozen
from seatrial.errors import InvalidInput, NotFound, SetupProblem
from seatrial.system.removal import scratch_directory
from seatrial.task_content.folder import is_task

_TIMEOUT_SEC = 30.0
_GIT_TIMEOUT_SEC = 600.0
_SIZE_LIMIT = 64 * 1024 * 1024
_NO_OTHER_PROGRAMS = ("filter.lfs.process=", "filter.lfs.smudge=cat", "filter.lfs.required=false")
"""A repository may name another server for its large files."""
_GIT_SCHEMES = ("https", "http", "ssh", "git", "file")


class RegistryTask(Frozen):
    """Where to get one task of a dataset. Other fields of the file are ignored."""

    model_config = ConfigDict(extra="ignore")

    name: str
    path: str
    git_url: str | None = None
    git_commit_id: str | None = None


class RegistryDataset(Frozen):
    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    name: str
    version: str = "head"
    description: Annotated[str, BeforeValidator(lambda text: text or "")] = ""
    tasks: tuple[RegistryTask, ...]


class Registry(Frozen):
    """The content of one registry file."""

    source: str
    """The path or URL it was read from."""
    datasets: tuple[RegistryDataset, ...]

    def find(self, name: str, version: str | None = None) -> RegistryDataset:
        """Without a version, ``head`` if it exists, otherwise the highest. ``NotFound`` lists the known names."""
        versions = {dataset.version: dataset for dataset in self.datasets if dataset.name == name}
        if not versions:
            known = ", ".join(sorted({dataset.name for dataset in self.datasets})) or "none"
            raise NotFound(f"The registry {self.source} has no dataset {name!r}.", fix=f"It has: {known}.")
        if version is None:
            return versions.get("head") or versions[max(versions, key=_version_order)]
        if version not in versions:
            known = ", ".join(sorted(versions, key=_version_order))
            raise NotFound(f"The dataset {name!r} has no version {version!r}.", fix=f"It has: {known}.")
        return versions[version]


class FoundDataset(Frozen):
    """A dataset whose tasks are on this machine now."""

    name: str
    version: str
    description: str
    paths: tuple[Path, ...]


@asynccontextmanager
async def open_dataset(
    source: str, name: str, version: str | None = None, *, anywhere: bool = True
) -> AsyncIterator[FoundDataset]:
    """The dataset with the folders of its tasks; fetched ones are gone when the block ends. ``anywhere`` is for users
    of this machine; for callers of a service, see ``registry_reach``."""
    registry = await load_registry(source, anywhere=anywhere)
    dataset = registry.find(name, version)
    with scratch_directory("seatrial-dataset-") as scratch:
        reach = None if anywhere else await asyncio.to_thread(Reach.of, source)
        folders = await fetch_tasks(registry, dataset.tasks, scratch, reach)
        paths = tuple(folders[task.name] for task in dataset.tasks)
        yield FoundDataset(name=dataset.name, version=dataset.version, description=dataset.description, paths=paths)


_DATASETS = TypeAdapter(tuple[RegistryDataset, ...])


async def load_registry(source: str, *, anywhere: bool = True) -> Registry:
    """Reads the file at a path or an ``http(s)`` URL; ``InvalidInput`` or ``NotFound`` say what is wrong with it."""
    text = await asyncio.to_thread(_read, source, anywhere)
    try:
        return Registry(source=source, datasets=_DATASETS.validate_json(text))
    except ValidationError as bad:
        reason = bad.errors(include_url=False)[0]
        place = ".".join(str(part) for part in reason["loc"])
        raise InvalidInput(f"{source} is not a registry file: {place} {reason['msg']}") from bad


async def fetch_tasks(
    registry: Registry, tasks: Sequence[RegistryTask], into: Path, reach: Reach | None = None
) -> dict[str, Path]:
    """The folder of every task, by name. Local ones stay where they are; others are fetched below ``into``."""
    found: dict[str, Path] = {}
    repositories: dict[tuple[str, str], list[RegistryTask]] = {}
    for task in tasks:
        if task.git_url is None:
            found[task.name] = _local(registry, task)
        else:
            repositories.setdefault((task.git_url, task.git_commit_id or "HEAD"), []).append(task)
    for number, ((url, commit), members) in enumerate(sorted(repositories.items()), 1):
        checkout = into / f"repository-{number}"
        await _checkout(url, commit, [_relative(task) for task in members], checkout, reach)
        for task in members:
            found[task.name] = _checked(task, checkout / _relative(task), checkout)
    return found


def _read(source: str, anywhere: bool) -> bytes:
    if urlsplit(source).scheme in ("http", "https"):
        try:
            opener = urllib.request.build_opener(*(() if anywhere else (SameHostOnly,)))
            with opener.open(source, timeout=_TIMEOUT_SEC) as answer:
                text: bytes = answer.read(_SIZE_LIMIT + 1)
        except (urllib.error.URLError, TimeoutError, OSError) as failed:
            raise NotFound(f"The registry {source} could not be read: {failed}.") from failed
    else:
        path = Path(source)
        if not path.is_file():
            raise NotFound(f"There is no registry file {source}.")
        text = path.read_bytes()
    if len(text) > _SIZE_LIMIT:
        raise InvalidInput(f"The registry {source} is larger than 64 MB.")
    return text


def _local(registry: Registry, task: RegistryTask) -> Path:
    if urlsplit(registry.source).scheme in ("http", "https"):
        raise InvalidInput(f"Task {task.name!r} has no git_url, and {registry.source} is not a local file.")
    root = Path(registry.source).resolve().parent
    # A local registry is the user's own file, so it may point anywhere on this machine.
    return _checked(task, root / task.path, None)


def _checked(task: RegistryTask, folder: Path, inside: Path | None) -> Path:
    if inside is not None and not folder.resolve().is_relative_to(inside.resolve()):
        raise InvalidInput(f"Task {task.name!r} of the registry points outside its repository: {task.path}.")
    if not is_task(folder):
        raise NotFound(f"There is no task {task.name!r} at {folder}.")
    return folder


def _relative(task: RegistryTask) -> str:
    path = PurePosixPath(task.path)
    if path.is_absolute() or ".." in path.parts or str(path).startswith("-"):
        raise InvalidInput(f"Task {task.name!r} of the registry points outside its repository: {task.path}.")
    return str(path)


async def _checkout(url: str, commit: str, paths: Sequence[str], into: Path, reach: Reach | None) -> None:
    """Fetches one commit, and of its files only those below the paths."""
    if urlsplit(url).scheme not in _GIT_SCHEMES:
        raise InvalidInput(f"The registry names a repository that cannot be fetched: {url}.", fix="Use an https URL.")
    if commit.startswith("-"):
        raise InvalidInput(f"The registry names an invalid commit: {commit}.")
    if shutil.which("git") is None:
        raise SetupProblem(f"Git is needed to fetch {url}.", fix="Run: apt-get install git")
    options: list[str] = []
    if reach is not None:
        options = [await asyncio.to_thread(reach.admit, url), "http.followRedirects=false", *_NO_OTHER_PROGRAMS]
    into.mkdir(parents=True, exist_ok=True)
    for arguments in (
        ("init", "--quiet"),
        ("sparse-checkout", "set", "--no-cone", *(f"/{path}/" for path in paths)),
        ("fetch", "--quiet", "--depth=1", "--filter=blob:none", url, commit),
        ("checkout", "--quiet", "FETCH_HEAD"),
    ):
        await _git(url, into, options, *arguments)


async def _git(url: str, cwd: Path, further: Sequence[str], *arguments: str) -> None:
    """One Git command that asks nobody and speaks only the protocols named above."""
    options = [*further, "protocol.allow=never", *(f"protocol.{scheme}.allow=always" for scheme in _GIT_SCHEMES)]
    options += ["core.hooksPath=/dev/null", "core.askPass=/bin/false"]
    process = await asyncio.create_subprocess_exec(
        "git",
        *(word for option in options for word in ("-c", option)),
        *arguments,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # no terminal, so Git cannot ask for a password
    )
    try:
        _, complaint = await asyncio.wait_for(process.communicate(), _GIT_TIMEOUT_SEC)
    except TimeoutError as late:
        process.kill()
        await process.wait()
        raise NotFound(f"{url} did not answer within {_GIT_TIMEOUT_SEC:.0f} seconds.") from late
    if process.returncode:
        last = complaint.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        raise NotFound(f"{url} could not be fetched: {last[0]}")


def _version_order(version: str) -> tuple[tuple[int, int, str], ...]:
    """``1.10`` after ``1.9``; numbers before words."""
    parts = version.replace("-", ".").split(".")
    return tuple((0, int(part), "") if part.isdigit() else (-1, 0, part) for part in parts)
