"""Builds a task's environment once for all callers of all processes.

The resolver calls it. The content of the environment names the image, so that two tasks with the same environment share
one image, and a changed environment gets another.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import ImageFault, SeatrialError
from seatrial.sandboxes.images.context import BuildContext, ContextEntry
from seatrial.sandboxes.images.fetcher import Fetcher
from seatrial.sandboxes.images.image import (
    LABEL_BASES,
    LABEL_KEY,
    LABEL_TASK,
    BaseImage,
    BuildPlan,
    Image,
    ImageRequest,
    ImageStore,
    LogSink,
)
from seatrial.sandboxes.images.locks import UseRecords
from seatrial.sandboxes.images.prune import Pruner
from seatrial.sandboxes.images.references import familiar
from seatrial.sandboxes.images.registries import OWN_REPOSITORY
from seatrial.sandboxes.images.rewrite import TASK_DIR, Rewritten, rewrite
from seatrial.sandboxes.images.single_flight import SingleFlight
from seatrial.sandboxes.images.stages import Recipe, native_architecture
from seatrial.sandboxes.images.trust import Trust
from seatrial.system.file_locks import file_lock
from seatrial.system.removal import remove_tree

_RULES = "2"
"""Change it whenever this code builds the same environment differently."""
_LOG_LIMIT = 64 << 20


@dataclass(frozen=True, slots=True)
class Environment:
    """One environment directory as it was at the time of the request."""

    context: BuildContext
    entries: tuple[ContextEntry, ...]
    key: str

    @property
    def reference(self) -> str:
        return f"{OWN_REPOSITORY}:{self.key[:32]}"


class EnvironmentBuilder:
    def __init__(
        self,
        store: ImageStore,
        fetcher: Fetcher,
        uses: UseRecords,
        pruner: Pruner,
        folder: Path,
        trust: Trust | None = None,
        *,
        longest_sec: float = 3600.0,
        parallel: int | None = None,
    ) -> None:
        self._store = store
        self._fetcher = fetcher
        self._uses = uses
        self._pruner = pruner
        self._folder = folder
        self._trust = trust
        self._longest_sec = longest_sec
        self._slots = [folder / "slots" / str(number) for number in range(parallel or os.cpu_count() or 1)]
        self._flights: SingleFlight[Image] = SingleFlight()
        self._keys: dict[str, tuple[str, str]] = {}

    async def image(self, request: ImageRequest, log: LogSink) -> Image:
        """The environment's image, from the store or from a build."""
        environment = await asyncio.to_thread(self._look_at, request)
        found = await self._built_before(environment)
        if found is not None:
            return found
        return await self._flights.join(environment.key, lambda sink: self._build_once(environment, request, sink), log)

    def _look_at(self, request: ImageRequest) -> Environment:
        """Reads files only if a name, a size or a time has changed since the last call."""
        context = BuildContext(request.environment_dir, request.dockerfile)
        entries = context.entries()
        facts = {
            "rules": _RULES,
            "architecture": native_architecture(),
            "dockerfile": context.text,
            "args": dict(sorted(request.build_args.items())),
            "target": request.target,
            "trust": self._trust.digest if self._trust else "",
        }
        stamp = hashlib.sha256(f"{entries} {facts}".encode()).hexdigest()
        remembered = self._keys.get(str(context.root))
        if remembered is not None and remembered[0] == stamp:
            return Environment(context, entries, remembered[1])
        facts["context"] = context.digest(entries)
        key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
        self._keys[str(context.root)] = (stamp, key)
        return Environment(context, entries, key)

    async def _built_before(self, environment: Environment) -> Image | None:
        """The image, unless one of its bases was replaced since."""
        image = await self._store.find(environment.reference)
        if image is None:
            return None
        for base in image.bases:
            current = await self._store.find(base.reference)
            if current is not None and current.digest != base.digest:
                return None
        return image.model_copy(update={"source": "built", "build_log": self._log_path(environment)})

    async def _build_once(self, environment: Environment, request: ImageRequest, log: LogSink) -> Image:
        path = self._log_path(environment)
        async with file_lock(self._folder / "locks" / f"{self._store.name}-{environment.key[:32]}"):
            found = await self._built_before(environment)
            if found is not None:  # another process built it
                return found
            async with file_lock(*self._slots):
                with kept_log(path, log) as sink:
                    try:
                        image = await self._build(environment, request, sink)
                    except SeatrialError as fault:
                        sink(f"\n{fault}\n")
                        raise ImageFault(
                            f"Image of {request.task_name}: {fault}", fix=f"The build's log: {path}"
                        ) from fault
        return image.model_copy(update={"build_log": path})

    async def _build(self, environment: Environment, request: ImageRequest, log: LogSink) -> Image:
        await self._pruner.make_room()
        recipe = Recipe.read(environment.context.text, request.build_args, request.target)
        with ExitStack() as held:
            bases = [await self._base(reference, log) for reference in recipe.bases()]
            for base in bases:
                held.enter_context(self._uses.hold(base.digest))
            rewritten = rewrite(recipe, {base.reference: base.config for base in bases}, self._trust)
            log("".join(f"Note: {note}\n" for note in rewritten.notes))
            async with self._staged(environment, rewritten) as place:
                plan = BuildPlan(
                    reference=environment.reference,
                    context_dir=place / "context",
                    dockerfile=place / "Dockerfile",
                    labels=_labels(environment, request, bases),
                    timeout_sec=self._time_for(request, log),
                    fetches=tuple(rewritten.fetches),
                )
                return await self._store.build(plan, log)

    def _time_for(self, request: ImageRequest, log: LogSink) -> float:
        if request.build_timeout_sec > self._longest_sec:
            log(f"The task asks for {request.build_timeout_sec:g} s to build; {self._longest_sec:g} s are allowed.\n")
        return min(request.build_timeout_sec, self._longest_sec)

    async def _base(self, reference: str, log: LogSink) -> Image:
        if reference.startswith(OWN_REPOSITORY):
            raise ImageFault(f"{reference} is the image of another task.")
        image = await self._fetcher.bring(reference, log)
        log(f"Base {familiar(reference)} ({image.source}) {image.digest}\n")
        return image.model_copy(update={"reference": reference})

    @asynccontextmanager
    async def _staged(self, environment: Environment, rewritten: Rewritten) -> AsyncIterator[Path]:
        parent = self._folder / "staging"
        parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix="build-", dir=parent))
        try:
            await asyncio.to_thread(_stage, environment, rewritten, place)
            yield place
        finally:
            await asyncio.shield(asyncio.to_thread(remove_tree, place))

    def _log_path(self, environment: Environment) -> Path:
        return self._folder / "logs" / f"{self._store.name}-{environment.key[:32]}.log"


def _labels(environment: Environment, request: ImageRequest, bases: list[Image]) -> dict[str, str]:
    used = [BaseImage(reference=base.reference, digest=base.digest, source=base.source).model_dump() for base in bases]
    # buildah writes labels into its Dockerfile, and the author chose the task's name.
    task = re.sub(r"[^\w./:@ -]", "_", request.task_name)[:200]
    return {LABEL_KEY: environment.key, LABEL_TASK: task, LABEL_BASES: json.dumps(used)}


def _stage(environment: Environment, rewritten: Rewritten, place: Path) -> None:
    """Copies the context, adds the generated files, and writes the Dockerfile outside of it."""
    context = place / "context"
    environment.context.copy(environment.entries, context / TASK_DIR if rewritten.apart else context)
    for name, content in rewritten.files.items():
        target = context / name
        if name.endswith("/"):
            target.mkdir(parents=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
    (place / "Dockerfile").write_text(rewritten.text)


@contextmanager
def kept_log(path: Path, also: LogSink, limit: int = _LOG_LIMIT) -> Iterator[LogSink]:
    """A log that writes to ``path`` and to ``also``. Both end with a note after ``limit`` characters."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", errors="replace") as stream:
        left = limit

        def write(text: str) -> None:
            nonlocal left
            if left <= 0:
                return
            piece = text[:left]
            left -= len(piece)
            if left <= 0:
                piece += f"\n… the rest of the output is not kept: more than {limit} characters.\n"
            stream.write(piece)
            stream.flush()
            also(piece)

        yield write
