"""One view of a sandbox's files: what the processes of one of its mount namespaces see, entered from this machine.

``oci`` uses one for each of its two containers, ``docker`` wherever the engine's containers run on this machine. The
rules of ``host.transfer`` hold: paths are resolved inside the sandbox, and nothing in it is trusted.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, Protocol

from seatrial.errors import SandboxFault
from seatrial.sandboxes.host.in_root import closing
from seatrial.sandboxes.host.lent_tree import LentTree, empty_place
from seatrial.sandboxes.host.private_mounts import PrivateMounts
from seatrial.sandboxes.host.root_mount import nodev
from seatrial.sandboxes.host.transfer import LeftOut, Roots, Transfer, TransferLimits


class Files(Protocol):
    """Copies files by absolute paths inside the sandbox. A missing source is a ``FileNotFoundError``."""

    async def put_file(self, source: Path, target: str) -> None: ...

    async def put_tree(self, source: Path, target: str) -> None: ...

    async def get_file(self, source: str, target: Path, limits: TransferLimits) -> None: ...

    async def get_tree(self, source: str, target: Path, limits: TransferLimits, first: Sequence[str] = ()) -> LeftOut:
        """Returns what was left out, and why. Names in ``first`` are copied before the others where the order can be
        chosen."""
        ...


class SandboxView:
    """One mount namespace, from ``__init__`` to ``close``; implements ``Files``."""

    def __init__(self, mounts: PrivateMounts, entrance: int, roots: Roots | None = None) -> None:
        """``entrance`` is a descriptor of a process or of a mount namespace. ``close`` closes it. ``roots`` opens its
        root, if it is not the namespace's own."""
        self._mounts = mounts
        self._roots = roots or mounts
        self._entrance: int | None = entrance
        self._lock = threading.Lock()

    async def put_file(self, source: Path, target: str) -> None:
        await self.carry(Transfer.put_file, source, target)

    async def put_tree(self, source: Path, target: str) -> None:
        await self.carry(Transfer.put_tree, source, target)

    async def get_file(self, source: str, target: Path, limits: TransferLimits) -> None:
        await self.carry(Transfer.get_file, source, target, limits)

    async def get_tree(self, source: str, target: Path, limits: TransferLimits, first: Sequence[str] = ()) -> LeftOut:
        return await self.carry(Transfer.get_tree, source, target, limits, first)

    async def start[**P, T](self, work: Callable[Concatenate[Transfer, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs a short method of ``Transfer``, see ``PrivateMounts.start``."""
        return await self._mounts.start(lambda: self.call(work, *args, **kwargs))

    async def carry[**P, T](self, work: Callable[Concatenate[Transfer, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs a method of ``Transfer`` that may take long."""
        return await self._mounts.carry(lambda: self.call(work, *args, **kwargs))

    def call[**P, T](self, work: Callable[Concatenate[Transfer, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs a method of ``Transfer`` in the calling thread, which belongs to ``PrivateMounts``. Blocking."""
        with self._entered() as entrance:
            return work(Transfer(self._roots, entrance), *args, **kwargs)

    def forbid_devices(self, *places: str) -> None:
        """Mounts these places ``nodev``, as far as they are mount points: device nodes there cannot be opened. For a
        thread of ``PrivateMounts``."""
        with self._entered() as entrance, self._mounts.inside(entrance):
            for place in places:
                if place == "/" or os.path.ismount(place):
                    nodev(Path(place))

    def lend(self, directory: Path, place: str) -> None:
        """Mounts a directory of this machine read-only, at an empty place. Raises ``OSError`` where that is not
        possible. For a thread of ``PrivateMounts``."""
        with (
            LentTree(directory) as tree,
            self._entered() as entrance,
            closing(self._roots.root_of(entrance)) as root,
            empty_place(root, place) as target,
            self._mounts.inside(entrance),
        ):
            tree.move_to(target)

    def close(self) -> None:
        """Work that has begun still ends normally."""
        with self._lock:
            entrance, self._entrance = self._entrance, None
        if entrance is not None:
            os.close(entrance)

    @contextmanager
    def _entered(self) -> Iterator[int]:
        """Duplicates the descriptor for each piece of work: a closed number may soon belong to another sandbox."""
        with self._lock:
            if self._entrance is None:
                raise SandboxFault("The sandbox is gone.")
            entrance = os.dup(self._entrance)
        try:
            yield entrance
        except ProcessLookupError:
            raise SandboxFault("The sandbox is gone: its first process has ended.") from None
        finally:
            os.close(entrance)
