"""Files of a docker sandbox that cannot be entered from here: through the engine for the agent's view, through the
sidecar for the verifier's.

``sandbox_container`` uses the one of the current view. Both resolve paths inside the sandbox, where its links cannot
lead out. ``archive`` unpacks what comes out, and trusts none of it.
"""

from __future__ import annotations

import base64
import json
import shlex
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path, PurePosixPath

from seatrial.errors import SandboxFault
from seatrial.sandboxes.docker.archive import Unpacking, packed_file, packed_tree
from seatrial.sandboxes.docker.client import EngineClient, EngineRefused
from seatrial.sandboxes.docker.command import EngineCommands, Order, Take
from seatrial.sandboxes.docker.sidecar import Sidecar
from seatrial.sandboxes.host.transfer import LeftOut, TransferLimits

_GO_DIRECTORY = 1 << 31
_GO_LINK = 1 << 27


class ArchiveFiles(ABC):
    """Copies files as tar archives; implements ``host.view.Files``."""

    async def put_file(self, source: Path, target: str) -> None:
        place = PurePosixPath(target)
        if target.endswith("/") or await self._is_directory(target):
            place = place / source.name
        await self._put(str(place.parent), lambda: packed_file(source, place.name))

    async def put_tree(self, source: Path, target: str) -> None:
        await self._put(target, lambda: packed_tree(source))

    async def get_file(self, source: str, target: Path, limits: TransferLimits) -> None:
        async with Unpacking.file(target, limits) as unpacking:
            await self._get(source, unpacking.take, None)

    async def get_tree(self, source: str, target: Path, limits: TransferLimits, first: Sequence[str] = ()) -> LeftOut:
        async with Unpacking.tree(target, limits) as unpacking:
            await self._get(source, unpacking.take, first)
        return unpacking.left_out

    @abstractmethod
    async def _is_directory(self, path: str) -> bool: ...

    @abstractmethod
    async def _put(self, directory: str, pack: Callable[[], AsyncIterator[bytes]]) -> None: ...

    @abstractmethod
    async def _get(self, path: str, take: Take, first: Sequence[str] | None) -> None:
        """Packs a file; with ``first`` the content of a directory, these names before the others."""


class AgentFiles(ArchiveFiles):
    """The sandbox as its own processes see it."""

    def __init__(self, engine: EngineClient, container: str) -> None:
        self._engine = engine
        self._container = container

    async def _put(self, directory: str, pack: Callable[[], AsyncIterator[bytes]]) -> None:
        try:
            await self._send(directory, pack())
        except EngineRefused as error:
            if error.status != 404:
                raise
            await self._make(directory)
            await self._send(directory, pack())

    async def _send(self, directory: str, archive: AsyncIterator[bytes]) -> None:
        query = {"path": directory}
        async with self._engine.stream("PUT", self._archive, data=archive, query=query) as answer:
            await answer.read()

    async def _get(self, path: str, take: Take, first: Sequence[str] | None) -> None:
        if first is None:
            path = await self._followed(path)
        elif not await self._is_directory(path):
            raise FileNotFoundError(f"{path} does not exist in the sandbox.")
        else:
            path = f"{path.rstrip('/')}/."
        try:
            async with self._engine.stream("GET", self._archive, query={"path": path}) as answer:
                async for data in answer.content.iter_chunked(1 << 18):
                    await take(data)
        except EngineRefused as error:
            if error.status == 404:
                raise FileNotFoundError(f"{path} does not exist in the sandbox.") from error
            raise

    async def _make(self, directory: str) -> None:
        command = Order(["sh", "-c", f"mkdir -p {shlex.quote(directory)}"], user="0", cwd="/")
        ended = await EngineCommands(self._engine, self._container).run(command)
        if ended.return_code:
            raise SandboxFault(f"{directory} could not be made: {(ended.stderr or ended.stdout).strip()}")

    async def _is_directory(self, path: str) -> bool:
        mode = await self._mode(path)
        if mode & _GO_LINK:
            mode = await self._mode(f"{path.rstrip('/')}/.")
        return bool(mode & _GO_DIRECTORY)

    async def _followed(self, path: str) -> str:
        """Where a link leads inside the sandbox. The engine would send the link itself."""
        if not await self._mode(path) & _GO_LINK:
            return path
        command = Order(["readlink", "-f", "--", path], user="0", cwd="/")
        ended = await EngineCommands(self._engine, self._container).run(command)
        if ended.return_code:
            raise FileNotFoundError(f"{path} does not exist in the sandbox.")
        return ended.stdout.rstrip("\n")

    async def _mode(self, path: str) -> int:
        """As Go writes it; nothing if there is nothing."""
        try:
            async with self._engine.stream("HEAD", self._archive, query={"path": path}) as answer:
                return int(json.loads(base64.b64decode(answer.headers["X-Docker-Container-Path-Stat"]))["mode"])
        except EngineRefused as error:
            if error.status == 404:
                return 0
            raise

    @property
    def _archive(self) -> str:
        return f"/containers/{self._container}/archive"


class GradingFiles(ArchiveFiles):
    """The sandbox as the verifier sees it."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar

    async def _is_directory(self, path: str) -> bool:
        return await self._sidecar.is_directory(path)

    async def _put(self, directory: str, pack: Callable[[], AsyncIterator[bytes]]) -> None:
        await self._sidecar.put(directory, pack())

    async def _get(self, path: str, take: Take, first: Sequence[str] | None) -> None:
        await self._sidecar.get(path, take, tree=first is not None, first=first or ())
