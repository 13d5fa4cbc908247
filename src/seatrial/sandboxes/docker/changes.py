"""What changed in a container according to its engine: whether that breaks it, and whether it is suspicious.

``sandbox_container`` searches for suspicions this way if it cannot read the layers itself (``oci.layer_suspicion``).
The image's own files then come from a second container that is never started.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePosixPath

from seatrial.sandboxes.docker.client import EngineClient
from seatrial.sandboxes.docker.container import Container
from seatrial.sandboxes.docker.entry import read_entry
from seatrial.sandboxes.host.container_defaults import FOUNDATIONS
from seatrial.sandboxes.suspicion import PATH, SIZE_LIMIT, SearchPath, SuspectPaths

_MODIFIED, _DELETED = 0, 2
_MOST_READ = 300
"""Files that are read one by one. More changed programs than that are suspicious by themselves."""
_FOUNDATIONS = (*FOUNDATIONS, "/usr/bin/sh", "/usr/bin/bash")
"""With the targets of the usual links: the engine reports a deleted file under its real path."""


async def find_suspicions(engine: EngineClient, container: Container, search_path: str) -> tuple[str, ...]:
    search = SearchPath.of(search_path)
    changes = await _changes(engine, container.name)
    changed = [path for path, kind in changes.items() if kind != _DELETED]
    paths = SuspectPaths.among(changed, search)
    owned = [path for path in paths.owned if changes[path] == _MODIFIED]
    paths = replace(paths, owned=tuple(owned[:_MOST_READ]))
    flood = (PATH,) if len(owned) > _MOST_READ else ()
    suspects = paths.with_contents(await _contents(engine, container.name, paths.all), search)
    if not suspects:
        return flood
    name = f"seatrial-original-{uuid.uuid4().hex[:12]}"
    body = {
        "Image": container.plan.image.digest,
        "Cmd": ["true"],
        "Labels": container.labels,  # by which leftovers are found
        "HostConfig": {"NetworkMode": "none"},
    }
    try:
        await engine.post("/containers/create", body, name=name)
        return (*suspects.marks(await _contents(engine, name, suspects.compared_with)), *flood)
    finally:
        await engine.remove_container(name)


async def find_losses(engine: EngineClient, container: str) -> tuple[str, ...]:
    """Interpreters of scripts that the image had and that are deleted, alone or with their directory."""
    changes = await _changes(engine, container)
    deleted = {path for path, kind in changes.items() if kind == _DELETED}
    return tuple(path for path in _FOUNDATIONS if deleted & {path, *map(str, PurePosixPath(path).parents)})


async def _changes(engine: EngineClient, container: str) -> dict[str, int]:
    entries = await engine.get(f"/containers/{container}/changes")
    # Without changes an engine answers "null".
    return {entry["Path"]: entry["Kind"] for entry in entries} if isinstance(entries, list) else {}


async def _contents(engine: EngineClient, container: str, paths: Iterable[str]) -> dict[str, bytes]:
    """A link is ``-> target``."""
    found = {}
    for path in sorted(paths):
        entry = await read_entry(engine, container, path, SIZE_LIMIT)
        if entry is not None:
            found[path] = entry.content if entry.is_file else b"-> " + entry.content
    return found
