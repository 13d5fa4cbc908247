"""Constructs the parts for one store. The sandboxes, the CLI and ``wiring`` use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from seatrial.sandboxes.images.build_network import build_network
from seatrial.sandboxes.images.buildah import BuildahStore
from seatrial.sandboxes.images.builder import EnvironmentBuilder
from seatrial.sandboxes.images.confinement import BuildLimits
from seatrial.sandboxes.images.debian import DebianBootstrap
from seatrial.sandboxes.images.fetcher import Fetcher, UnreachableRegistries
from seatrial.sandboxes.images.image import ImageStore
from seatrial.sandboxes.images.locks import UseRecords
from seatrial.sandboxes.images.prune import Pruner
from seatrial.sandboxes.images.registries import Registries
from seatrial.sandboxes.images.resolver import ImageResolver
from seatrial.sandboxes.images.trust import Trust
from seatrial.sandboxes.options import SandboxOptions
from seatrial.settings import tool_environment


@dataclass(frozen=True, slots=True)
class Images:
    """The parts for one kind of sandbox. A sandbox needs only ``resolver``."""

    store: ImageStore
    resolver: ImageResolver
    bootstrap: DebianBootstrap
    pruner: Pruner
    uses: UseRecords


def assemble(store: ImageStore, options: SandboxOptions, environ: Mapping[str, str] | None = None) -> Images:
    folder = options.images_dir
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bases").mkdir(exist_ok=True)
    trust = Trust.read(options.extra_ca_file)
    bootstrap = DebianBootstrap(folder / "bases", environ or tool_environment(), options.debian_mirror, trust)
    fetcher = Fetcher(
        store,
        UnreachableRegistries(folder / "silent"),
        bootstrap if options.bootstrap_bases else None,
        folder / "locks",
        Registries.of(options),
        may_pull=options.pull_if_not_exists,
    )
    uses = UseRecords(folder / "uses" / store.name)
    pruner = Pruner(store, uses, folder, int(options.image_low_water_gb * 1e9))
    builder = EnvironmentBuilder(store, fetcher, uses, pruner, folder, trust, longest_sec=options.max_build_sec)
    resolver = ImageResolver(
        store,
        fetcher,
        builder,
        uses,
        docker_registry=options.docker_registry,
        default_registry=options.default_registry,
        may_pull=options.pull_if_not_exists,
    )
    return Images(store, resolver, bootstrap, pruner, uses)


def build_limits(options: SandboxOptions) -> BuildLimits:
    return BuildLimits(
        cpus=options.max_build_cpus,
        memory_mb=options.max_build_memory_mb,
        pids=options.max_build_pids,
        disk_mb=options.max_build_disk_mb,
    )


def oci_images(options: SandboxOptions) -> Images:
    """Images for the ``oci`` sandbox, in buildah's store inside the cache."""
    environ = tool_environment()
    store = BuildahStore(options.images_dir / "oci", environ, build_network(options, environ), build_limits(options))
    return assemble(store, options, environ)


@lru_cache(maxsize=8)
def shared_oci_images(options: SandboxOptions) -> Images:
    """The same object for the same options. Harbor constructs each sandbox separately; they share builds."""
    return oci_images(options)
