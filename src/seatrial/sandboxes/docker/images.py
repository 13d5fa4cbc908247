"""The image store of a container engine, for the ``docker`` sandbox. See ``ImageStore`` for what it promises.

The resolver in ``images`` decides what is wanted. Builds go through the engine's own builder with the
context as a stream, so the engine may be on another machine.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from seatrial.errors import ImageFault, SandboxFault
from seatrial.sandboxes.docker.archive import packed_tree
from seatrial.sandboxes.docker.client import EngineClient, EngineRefused
from seatrial.sandboxes.images.assembly import Images, assemble, build_limits
from seatrial.sandboxes.images.confinement import BuildLimits
from seatrial.sandboxes.images.image import (
    LABEL_BOOTSTRAPPED,
    LABEL_KEY,
    BuildPlan,
    Image,
    ImageConfig,
    ImageSource,
    LogSink,
    RegistryUnreachable,
    StoredImage,
)
from seatrial.sandboxes.images.references import familiar, parse
from seatrial.sandboxes.options import SandboxOptions

_DOCKERFILE = ".seatrial.dockerfile"
_REGISTRY_PATIENCE_SEC = 20.0
_NOBODY = base64.urlsafe_b64encode(b"{}").decode()
"""Empty credentials in the engine's encoding."""
_SILENCE = (
    "no such host",
    "i/o timeout",
    "connection refused",
    "network is unreachable",
    "no route to host",
    "handshake timeout",
    "server misbehaving",
    "Client.Timeout",
    "context deadline exceeded",
    "connection reset",
    "EOF",
)


@lru_cache(maxsize=8)
def shared_engine_images(options: SandboxOptions) -> Images:
    """One object for the same options: Harbor constructs each sandbox separately, and they share running builds."""
    store = EngineStore(options.docker_host, limits=build_limits(options), may_fetch=options.allow_host_network_builds)
    return assemble(store, options)


class EngineStore:
    """Images in a container engine. Holds no connection between calls, so that any event loop may use it."""

    name = "docker"

    def __init__(
        self,
        host: str = "",
        *,
        limits: BuildLimits | None = None,
        may_fetch: bool = False,
        registry_patience_sec: float = _REGISTRY_PATIENCE_SEC,
    ) -> None:
        """``may_fetch`` lets ``ADD`` have the engine fetch addresses from the network of its own machine."""
        self._host = host
        self._limits = limits or BuildLimits()
        self._may_fetch = may_fetch
        self._patience_sec = registry_patience_sec

    @asynccontextmanager
    async def _engine(self) -> AsyncIterator[EngineClient]:
        """A connection whose errors are an ``ImageFault``."""
        async with EngineClient(self._host) as engine:
            with _image_faults():
                yield engine

    async def find(self, reference: str) -> Image | None:
        async with self._engine() as engine:
            return await _find(engine, reference)

    async def pull(self, reference: str, log: LogSink, *, trusted: bool = True) -> Image:
        wanted = parse(reference)
        query = {"fromImage": f"{wanted.registry}/{wanted.repository}", "tag": wanted.digest or wanted.tag}
        async with self._engine() as engine:
            try:
                headers = {"X-Registry-Auth": _credentials(wanted.registry) if trusted else _NOBODY}
                await _follow(engine, "/images/create", query, log, headers=headers, patience_sec=self._patience_sec)
            except (ImageFault, TimeoutError) as error:
                if isinstance(error, TimeoutError) or any(text in error.message for text in _SILENCE):
                    raise RegistryUnreachable(f"No registry answered for {familiar(reference)}.") from error
                raise ImageFault(f"{familiar(reference)} could not be pulled: {error.message}") from error
            return await _must_find(engine, reference, "pulled")

    async def build(self, plan: BuildPlan, log: LogSink) -> Image:
        """In the engine's own bridge, never in the network of its machine."""
        if plan.fetches and not self._may_fetch:
            raise ImageFault(
                f"ADD {plan.fetches[0]} would be fetched from the network of the engine's own machine.",
                fix="Fetch it with RUN, use --sandbox oci, or set SEATRIAL_ALLOW_HOST_NETWORK_BUILDS.",
            )
        query = {
            **self._limited(),
            "networkmode": "bridge",
            "dockerfile": _DOCKERFILE,
            "t": plan.reference,
            "labels": plan.labels,
            "rm": True,
            "forcerm": True,
            "nocache": True,  # we know by content what was built before, which is safer than the engine's cache
        }
        context = packed_tree(plan.context_dir, {_DOCKERFILE: plan.dockerfile})
        async with self._engine() as engine:
            try:
                async with asyncio.timeout(plan.timeout_sec):
                    await _follow(engine, "/build", query, log, data=context)
            except TimeoutError:
                raise ImageFault(f"The build took longer than {plan.timeout_sec:g} s and was ended.") from None
            except ImageFault as error:
                raise ImageFault(f"The build failed: {error.message}") from error
            return await _must_find(engine, plan.reference, "built")

    def _limited(self) -> dict[str, int]:
        """What the engine's interface can limit: memory and processors, not processes and disk."""
        memory = self._limits.memory_mb << 20
        cpus = {"cpuperiod": 100_000, "cpuquota": int(self._limits.cpus * 100_000)} if self._limits.cpus else {}
        return {"memory": memory, "memswap": memory, **cpus}

    async def load_root(self, reference: str, archive: Path, labels: dict[str, str], log: LogSink) -> Image:
        wanted = parse(reference)
        changes = ('CMD ["bash"]', *(f"LABEL {name}={_quoted(value)}" for name, value in labels.items()))
        # Docker takes the tag in either place, Podman in this one only.
        name = f"{wanted.registry}/{wanted.repository}:{wanted.tag}"
        query = {"fromSrc": "-", "repo": name, "changes": changes}
        async with self._engine() as engine:
            await _follow(engine, "/images/create", query, log, data=_content(archive))
            return await _must_find(engine, reference, "bootstrapped")

    async def tag(self, image: Image, reference: str) -> None:
        wanted = parse(reference)
        async with self._engine() as engine:
            with_repository = {"repo": f"{wanted.registry}/{wanted.repository}", "tag": wanted.tag}
            await engine.post(f"/images/{image.digest}/tag", **with_repository)

    async def push(self, image: Image, reference: str, log: LogSink) -> None:
        wanted = parse(reference)
        async with self._engine() as engine:
            path = f"/images/{wanted.registry}/{wanted.repository}/push"
            headers = {"X-Registry-Auth": _credentials(wanted.registry)}
            await _follow(engine, path, {"tag": wanted.tag}, log, headers=headers)

    async def remove(self, digest: str) -> None:
        async with self._engine() as engine:
            found = await engine.get(f"/images/{digest}/json")
            # By its names: an image with several names cannot be removed by its digest without force.
            for name in found.get("RepoTags") or [digest]:
                await engine.delete(f"/images/{name}")

    async def list(self) -> list[StoredImage]:
        found: dict[str, StoredImage] = {}
        async with self._engine() as engine:
            for label in (LABEL_KEY, LABEL_BOOTSTRAPPED):
                for entry in await engine.get("/images/json", filters={"label": [label]}):
                    found[entry["Id"]] = _stored(entry)
        return list(found.values())


def _stored(entry: Mapping[str, Any]) -> StoredImage:
    names = [name for name in entry.get("RepoTags") or () if name != "<none>:<none>"]
    return StoredImage(
        digest=entry["Id"],
        references=tuple(str(parse(name)) for name in names),
        size_bytes=int(entry["Size"]),
        created_at=datetime.fromtimestamp(entry["Created"], UTC),
        labels=entry.get("Labels") or {},
    )


async def _find(engine: EngineClient, reference: str) -> Image | None:
    try:
        found = await engine.get(f"/images/{familiar(reference)}/json")
    except EngineRefused as error:
        if error.status == 404:
            return None
        raise
    config = ImageConfig.read(found.get("Config") or {})
    return Image(reference=reference, digest=found["Id"], source=_source(config), config=config)


async def _must_find(engine: EngineClient, reference: str, source: ImageSource) -> Image:
    found = await _find(engine, reference)
    if found is None:
        raise ImageFault(f"{familiar(reference)} is not in the container engine although it said so.")
    return found.model_copy(update={"source": source})


def _source(config: ImageConfig) -> ImageSource:
    if LABEL_KEY in config.labels:
        return "built"
    return "bootstrapped" if LABEL_BOOTSTRAPPED in config.labels else "local"


async def _follow(
    engine: EngineClient,
    path: str,
    query: Mapping[str, Any],
    log: LogSink,
    *,
    data: AsyncIterator[bytes] | None = None,
    headers: Mapping[str, str] | None = None,
    patience_sec: float | None = None,
) -> None:
    """A call with progress reports. ``TimeoutError`` if none came within ``patience_sec``."""
    with _image_faults():
        async with (
            asyncio.timeout(patience_sec) as patience,
            engine.stream("POST", path, data=data, headers=headers, query=query) as answer,
        ):
            async for line in answer.content:
                report = json.loads(line) if line.strip() else {}
                if "error" in report:
                    raise ImageFault(str(report["error"]).strip())
                if report.get("status") != "Pulling from" and ("progressDetail" in report or "stream" in report):
                    patience.reschedule(None)
                log(_progress(report))


def _progress(report: Mapping[str, Any]) -> str:
    if "stream" in report:
        return str(report["stream"])
    words = [str(report[name]) for name in ("id", "status", "progress") if report.get(name)]
    return " ".join(words) + "\n" if words else ""


@contextmanager
def _image_faults() -> Iterator[None]:
    try:
        yield
    except SandboxFault as error:
        raise ImageFault(error.message, fix=error.fix) from error


async def _content(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while data := await asyncio.to_thread(file.read, 1 << 20):
            yield data


def _quoted(value: str) -> str:
    """Quoted for a LABEL instruction."""
    return json.dumps(value).replace("$", "\\$")


def _credentials(registry: str) -> str:
    """What ``docker login`` stored for a registry, in the engine's encoding."""
    place = Path.home() / ".docker" / "config.json"
    try:
        known = json.loads(place.read_text()).get("auths", {})
    except (OSError, ValueError):
        known = {}
    name = "https://index.docker.io/v1/" if registry == "docker.io" else registry
    user, _, password = base64.b64decode(known.get(name, {}).get("auth", "")).decode().partition(":")
    login = {"username": user, "password": password, "serveraddress": name} if user else {}
    return base64.urlsafe_b64encode(json.dumps(login).encode()).decode()
