"""The image store of the ``oci`` sandbox: buildah with its own storage inside the cache.

Only the resolver calls it. It knows nothing about tasks, the order of registries, or the callers that wait for a build.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from seatrial.errors import ImageFault
from seatrial.sandboxes.images import commands, references
from seatrial.sandboxes.images.build_network import PROXY_NAMES, BuildLine, BuildNetwork
from seatrial.sandboxes.images.commands import Finished, Patience
from seatrial.sandboxes.images.confinement import CAPABILITIES, BuildLimits, ConfinedCall, Confinement, own_mounts
from seatrial.sandboxes.images.image import (
    BuildPlan,
    Image,
    ImageSource,
    LogSink,
    RegistryUnreachable,
    StoredImage,
    source_of,
)
from seatrial.sandboxes.images.storage import OPTIONS_LIMIT, ImageRecord, StorageReader, remove_nodes
from seatrial.system.file_locks import file_lock, open_lock, try_lock
from seatrial.system.removal import remove_tree
from seatrial.system.whole_files import write_whole

_SILENCE = (
    "no such host",
    "dial tcp",
    "i/o timeout",
    "connection refused",
    "network is unreachable",
    "TLS handshake timeout",
    "proxyconnect",
    "server misbehaving",
    "503 Service Unavailable",
    "502 Bad Gateway",
)
"""Messages of a pull without an answer (or only one of a proxy), as opposed to a registry that refused."""
_KEPT_FROM_BUILDS = ("REGISTRY_AUTH_FILE", "DOCKER_CONFIG", "XDG_RUNTIME_DIR")
_FLATTEN = 'set -e; c=$("$@" from --pull-never "$IMAGE"); m=$("$@" mount "$c"); cp -a "$m/." "$INTO"; "$@" rm "$c"'


class BuildahStore:
    """See ``ImageStore``."""

    name = "oci"

    def __init__(
        self,
        root: Path,
        environ: Mapping[str, str],
        network: BuildNetwork,
        limits: BuildLimits | None = None,
        *,
        registry_patience_sec: float = 20.0,
        mount_options_limit: int = OPTIONS_LIMIT,
    ) -> None:
        self._root = root
        self._mount_options_limit = mount_options_limit
        self._environ = dict(environ)
        self._network = network
        self._confinement = Confinement(self._environ, limits or BuildLimits())
        self._patience = Patience(registry_patience_sec, ("Getting image source", "Copying ", "Error"))
        self._driver = ""
        self._reader: StorageReader | None = None
        self._swept = False

    async def find(self, reference: str) -> Image | None:
        record = (await self._storage()).find(reference)
        return None if record is None else await self._image(record, reference)

    async def pull(self, reference: str, log: LogSink, *, trusted: bool = True) -> Image:
        insecure = ["--tls-verify=false"] if references.parse(reference).on_this_machine else []
        async with self._pull_line(trusted) as line, self._scratch() as scratch:
            ended = await self._pull(["pull", *insecure, reference], scratch, line, log, trusted=trusted)
        if ended.silent or (not ended.ok and any(text in ended.tail for text in _SILENCE)):
            raise RegistryUnreachable(
                f"No registry answered for {references.familiar(reference)}.", fix=ended.last_line
            )
        if not ended.ok:
            raise ImageFault(f"{references.familiar(reference)} could not be pulled: {ended.last_line}")
        storage = await self._storage()
        if record := storage.find(reference):
            # A sandbox needs no device nodes, and an attacker could use them.
            await asyncio.to_thread(remove_nodes, storage.directories(record) or ())
        return await self._must_find(reference, "pulled")

    @asynccontextmanager
    async def _pull_line(self, trusted: bool) -> AsyncIterator[BuildLine]:
        """Names that a task's author chose are pulled from the network of builds, so no redirect reaches this machine.

        Behind a proxy, the proxy makes the request. Without a network for builds, only the check of the name counts."""
        machine = BuildLine(description="the machine's own", machine=True)
        if trusted or any(self._environ.get(name) for name in PROXY_NAMES):
            yield machine
            return
        async with self._network.line() as line:
            yield line if line.namespace is not None else machine

    async def _pull(
        self, argv: Sequence[str], scratch: Path, line: BuildLine, log: LogSink, *, trusted: bool
    ) -> Finished:
        await self._begin_storage()
        storage, work = self._root / "storage", scratch / "work"
        work.mkdir()
        call = ConfinedCall(
            argv=(*self._places(storage, work), *argv),
            env=self._jail_env(scratch, work, credentials=trusted),
            readable=(scratch / "conf", *(self._credential_files() if trusted else ())),
            writable=(storage, work),
            line=line,
            asks_registries=True,
            makes_nodes=True,
        )
        async with self._confinement.command(scratch, [call], log) as command:
            return await commands.run(command, self._environ, log, patience=self._patience)

    async def build(self, plan: BuildPlan, log: LogSink) -> Image:
        async with self._network.line() as line:
            log(f"Network of the build: {line.description}\n")
            return await self._build(plan, line, log)

    async def _build(self, plan: BuildPlan, line: BuildLine, log: LogSink) -> Image:
        if not self._swept:
            self._swept = True
            await self.sweep()
        try:
            async with self._scratch() as scratch:
                ended = await self._build_and_import(plan, scratch, line, log)
        except asyncio.CancelledError:
            await self.sweep()
            raise
        if not ended.ok:
            await self.sweep()
            if ended.timed_out:
                raise ImageFault(f"The build took longer than {plan.timeout_sec:g} s and was ended.")
            raise ImageFault(f"The build failed: {ended.last_line}")
        return await self._must_find(plan.reference, "built")

    async def _build_and_import(self, plan: BuildPlan, scratch: Path, line: BuildLine, log: LogSink) -> Finished:
        """Builds in a temporary store on a separate disk, on top of this store, which it can only read.

        A second call imports the image."""
        await self._begin_storage()
        driver, storage, disk = await self._storage_driver(), self._root / "storage", scratch / "disk"
        alias = scratch / "below"
        seen = self._store_below(alias, scratch)
        below = f"{driver}.imagestore={alias}"
        labels = [word for name, value in plan.labels.items() for word in ("--label", f"{name}={value}")]
        env = self._jail_env(scratch, disk, credentials=False)
        build = ConfinedCall(
            argv=(
                *(*self._places(disk / "storage", disk), "--storage-opt", below, "build"),
                *("--isolation", "chroot", "--network", "host", "--format", "docker", "--pull-never"),
                *("--layers=false", "--force-rm", *labels, "--tag", plan.reference),
                *("--file", str(plan.dockerfile), str(plan.context_dir)),
            ),
            env=env,
            readable=(scratch / "conf", plan.dockerfile, plan.context_dir),
            renamed=seen,
            writable=(disk,),
            line=line,
        )
        built = f"containers-storage:[{driver}@{disk / 'storage'}+{disk / 'run'}:{below}]{plan.reference}"
        take_in = ConfinedCall(
            argv=(*self._places(storage, disk / "taking"), "pull", "--quiet", built),
            env=env,
            readable=(scratch / "conf",),
            renamed=seen,
            writable=(storage, disk),
        )
        async with self._confinement.command(scratch, [build, take_in], log) as command:
            return await commands.run(command, self._environ, log, timeout_sec=plan.timeout_sec)

    def _store_below(self, alias: Path, scratch: Path) -> dict[Path, Path]:
        """This store at another path and with other lock files.

        buildah's file locks belong to the process. A process that both reads and writes this store would lose its lock
        when it closes the first file it read. Reading needs no lock, since buildah replaces the lists as a whole."""
        storage, locks = self._root / "storage", scratch / "locks"
        locks.mkdir()
        seen = {alias: storage}
        for number, path in enumerate(sorted([*storage.glob("*.lock"), *storage.glob(f"{self._driver}-*/*.lock")])):
            (locks / str(number)).touch()
            seen[alias / path.relative_to(storage)] = locks / str(number)
        return seen

    async def _begin_storage(self) -> None:
        """Makes the store, because a builder can only read it."""
        driver = await self._storage_driver()
        if not (self._root / "storage" / f"{driver}-images" / "images.json").exists():
            await self._quiet(["images", "--quiet"])

    def _places(self, storage: Path, work: Path) -> tuple[str, ...]:
        return ("--root", str(storage), "--runroot", str(work / "run"), "--storage-driver", self._driver)

    def _jail_env(self, scratch: Path, work: Path, *, credentials: bool) -> dict[str, str]:
        env = {**self._env(scratch), "TMPDIR": str(work)}
        if not credentials:
            env = {name: value for name, value in env.items() if name not in _KEPT_FROM_BUILDS}
            env["HOME"] = str(work)
        return env

    def _credential_files(self) -> tuple[Path, ...]:
        """Where ``buildah login`` and ``docker login`` keep credentials."""
        env = self._environ
        home, docker = Path(env.get("HOME", "/root")), env.get("DOCKER_CONFIG")
        runtime = Path(env.get("XDG_RUNTIME_DIR") or f"/run/containers/{os.getuid()}")
        named = env.get("REGISTRY_AUTH_FILE")
        found = (runtime / "containers" / "auth.json", runtime / "auth.json", home / ".config/containers/auth.json")
        docker_file = (Path(docker) if docker else home / ".docker") / "config.json"
        return (*found, docker_file, *((Path(named),) if named else ()))

    async def load_root(self, reference: str, archive: Path, labels: dict[str, str], log: LogSink) -> Image:
        async with self._scratch() as scratch:
            context = scratch / "context"
            context.mkdir()
            await asyncio.to_thread(_link_or_copy, archive, context / "root.tar")
            (scratch / "Dockerfile").write_text('FROM scratch\nADD ["root.tar", "/"]\nCMD ["bash"]\n')
            plan = BuildPlan(reference=reference, context_dir=context, dockerfile=scratch / "Dockerfile", labels=labels)
            image = await self._build(plan, BuildLine(description="nothing runs in it"), log)
        return image.model_copy(update={"source": "bootstrapped"})

    async def tag(self, image: Image, reference: str) -> None:
        await self._quiet(["tag", image.digest.removeprefix("sha256:"), reference])

    async def push(self, image: Image, reference: str, log: LogSink) -> None:
        """Pushes by id, because a build of the same image that ends now may move the name."""
        image_id = image.digest.removeprefix("sha256:")
        insecure = ["--tls-verify=false"] if references.parse(reference).on_this_machine else []
        async with self._scratch() as scratch:
            ended = await self._run(["push", *insecure, image_id, f"docker://{reference}"], scratch, log)
        if not ended.ok:
            raise ImageFault(f"{references.familiar(reference)} could not be pushed: {ended.last_line}")

    async def remove(self, digest: str) -> None:
        image_id = digest.removeprefix("sha256:")
        await self._quiet(["rmi", "--force", image_id])
        await asyncio.to_thread(remove_tree, self._flat_dir(image_id))

    async def list(self) -> list[StoredImage]:
        storage = await self._storage()
        return [
            StoredImage(
                digest=f"sha256:{record.id}",
                references=record.names,
                size_bytes=storage.size(record),
                created_at=record.created_at,
                labels=storage.config(record.id).labels,
            )
            for record in storage.records()
        ]

    async def sweep(self) -> None:
        """Removes what killed builders left, unless a builder of any process runs."""
        handle = open_lock(self._builders_lock)
        try:
            if not try_lock(handle, shared=False):
                return
            scratch = self._root / "scratch"
            await asyncio.to_thread(remove_tree, scratch)
            if (self._root / "storage" / f"{await self._storage_driver()}-containers" / "containers.json").exists():
                scratch.mkdir(exist_ok=True)
                await self._run(["rm", "--all"], scratch)
                await asyncio.to_thread(remove_tree, scratch)
        finally:
            os.close(handle)

    async def _quiet(self, argv: Sequence[str]) -> None:
        async with self._scratch() as scratch:
            ended = await self._run(argv, scratch)
        if not ended.ok:
            raise ImageFault(f"buildah {argv[0]}: {ended.last_line}")

    async def _run(self, argv: Sequence[str], scratch: Path, log: LogSink = commands.discard) -> Finished:
        """Runs buildah without confinement, for arguments that no task decides."""
        return await commands.run(own_mounts([*await self._tool(scratch), *argv]), self._env(scratch), log)

    async def _tool(self, scratch: Path) -> tuple[str, ...]:
        commands.require("buildah", self._environ)
        await self._storage_driver()
        # Mounts are private to each call, so the record of mounts has to be private too.
        return ("buildah", *self._places(self._root / "storage", scratch))

    def _env(self, scratch: Path) -> dict[str, str]:
        """Replaces the machine's containers configuration, except its registries and policy."""
        (scratch / "conf").mkdir(exist_ok=True)
        storage_conf, containers_conf = scratch / "conf" / "storage.conf", scratch / "conf" / "containers.conf"
        root, run = self._root / "storage", scratch / "run"
        storage_conf.write_text(f'[storage]\ndriver = "{self._driver}"\ngraphroot = "{root}"\nrunroot = "{run}"\n')
        quoted = ", ".join(f'"{name}"' for name in CAPABILITIES)
        containers_conf.write_text(f"[containers]\ndefault_capabilities = [{quoted}]\n")
        return {
            **self._environ,
            "TMPDIR": str(scratch),
            "CONTAINERS_STORAGE_CONF": str(storage_conf),
            "CONTAINERS_CONF": str(containers_conf),
        }

    @asynccontextmanager
    async def _scratch(self) -> AsyncIterator[Path]:
        parent = self._root / "scratch"
        async with file_lock(self._builders_lock, shared=True):  # a sweep would remove the folder
            parent.mkdir(parents=True, exist_ok=True)
            scratch = Path(tempfile.mkdtemp(prefix="work-", dir=parent))
            try:
                yield scratch
            finally:
                await asyncio.shield(asyncio.to_thread(remove_tree, scratch))

    @property
    def _builders_lock(self) -> Path:
        return self._root / "builders.lock"

    async def _storage(self) -> StorageReader:
        if self._reader is None:
            driver = await self._storage_driver()
            self._reader = StorageReader(self._root / "storage", driver, self._mount_options_limit)
        return self._reader

    async def _storage_driver(self) -> str:
        """``overlay`` if the kernel can mount one here, else ``vfs`` (whole copies). Decided once for each cache."""
        if not self._driver:
            record = self._root / "driver"
            if not record.exists():
                self._root.mkdir(parents=True, exist_ok=True)
                found = "overlay" if await self._overlay_works() else "vfs"
                write_whole(record, found)
            self._driver = record.read_text()
        return self._driver

    async def _overlay_works(self) -> bool:
        with tempfile.TemporaryDirectory(dir=self._root) as place:
            for name in ("lower", "upper", "work", "merged"):
                (Path(place) / name).mkdir()
            options = f"lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work"
            argv = own_mounts(["mount", "-t", "overlay", "-o", options, "overlay", f"{place}/merged"])
            return (await commands.run(argv, self._environ)).ok

    async def _must_find(self, reference: str, source: ImageSource) -> Image:
        found = await self.find(reference)
        if found is None:
            raise ImageFault(f"buildah reported success, but {reference} is not in the store.")
        return found.model_copy(update={"source": source})

    async def _image(self, record: ImageRecord, reference: str) -> Image:
        storage = await self._storage()
        config = storage.config(record.id)
        layers = storage.directories(record)
        return Image(
            reference=reference,
            digest=f"sha256:{record.id}",
            source=source_of(config.labels, "local"),
            config=config,
            layers=layers if layers is not None else (await self._flattened(record),),
        )

    def _flat_dir(self, image_id: str) -> Path:
        return self._root / "flat" / image_id

    async def _flattened(self, record: ImageRecord) -> Path:
        """One directory with all files of an image that has more layers than a mount can name."""
        flat = self._flat_dir(record.id)
        async with file_lock(flat.with_suffix(".lock")):
            if flat.exists():
                return flat
            async with self._scratch() as scratch:
                into = scratch / "flat"
                into.mkdir()
                env = {**self._env(scratch), "IMAGE": record.id, "INTO": str(into)}
                argv = own_mounts(["sh", "-c", _FLATTEN, "flatten", *await self._tool(scratch)])
                ended = await commands.run(argv, env)
                if not ended.ok:
                    raise ImageFault(f"The image's layers could not be flattened: {ended.last_line}")
                into.rename(flat)
        return flat


def _link_or_copy(source: Path, target: Path) -> None:
    with contextlib.suppress(OSError):
        target.hardlink_to(source.resolve())
        return
    shutil.copyfile(source, target)
