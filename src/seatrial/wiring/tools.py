"""What single commands need beside an installation: images, datasets, backups, Celery's own tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.adapters.archives import ArchiveLimits, unpack
from seatrial.adapters.model_list import listed_models
from seatrial.adapters.registry_harbor import open_dataset
from seatrial.adapters.store_sql.backup import backup, restore, set_aside
from seatrial.domain.task import Dataset
from seatrial.engine.clock import system_clock
from seatrial.engine.jobs.choice import dataset_of
from seatrial.errors import Conflict, InvalidInput
from seatrial.settings import Settings, package_environment
from seatrial.wiring.installation import Installation

if TYPE_CHECKING:
    from celery import Celery

    from seatrial.agents.kits.layers import AgentLayers
    from seatrial.agents.kits.shelf import KitShelf
    from seatrial.sandboxes.images.assembly import Images
    from seatrial.sandboxes.selection import Health


async def examine_sandboxes(settings: Settings) -> Health:
    """Each kind of sandbox with what it needs and what is missing. Starts each of them once."""
    from seatrial.sandboxes.options import SandboxOptions
    from seatrial.sandboxes.selection import examine

    return await examine(SandboxOptions.of(settings))


def images_of(settings: Settings, sandbox: str) -> Images:
    """The images from which this kind of sandbox starts."""
    from seatrial.sandboxes.images.assembly import oci_images
    from seatrial.sandboxes.options import SandboxOptions

    options = SandboxOptions.of(settings)
    if sandbox == "oci":
        return oci_images(options)
    if sandbox == "docker":
        from seatrial.sandboxes.docker.images import shared_engine_images

        return shared_engine_images(options)
    raise InvalidInput(f"The sandbox {sandbox} has no images.", field="sandbox", fix="Use oci or docker.")


def kits_of(settings: Settings) -> KitShelf:
    """The agent kits of this machine."""
    from seatrial.agents.kits.shelf import KitShelf
    from seatrial.sandboxes.options import SandboxOptions

    return KitShelf(SandboxOptions.of(settings).kits_dir, package_environment(), int(settings.kits_gb * 1e9))


def layers_of(settings: Settings) -> AgentLayers:
    """The installations of agents that this machine keeps as layers of images."""
    from seatrial.agents.kits.layers import AgentLayers
    from seatrial.sandboxes.docker.images import EngineStore
    from seatrial.sandboxes.options import SandboxOptions

    options = SandboxOptions.of(settings)
    return AgentLayers(options.kits_dir, int(settings.kits_gb * 1e9), EngineStore(options.docker_host).remove)


def unpack_archive(settings: Settings, archive: Path, into: Path) -> None:
    """Checks an untrusted archive and unpacks it as the folder ``into``."""
    unpack(archive, into, ArchiveLimits(max_bytes=settings.archive_limit_mb << 20))


async def import_dataset(
    installation: Installation, registry: str, name: str, version: str | None, *, at_the_machine: bool = False
) -> Dataset:
    """Imports a dataset of a Harbor registry file with its tasks. Importing it again returns the same dataset."""
    async with open_dataset(registry, name, version, anywhere=at_the_machine) as found:
        tasks = [task for path in found.paths for task in await installation.library.add(path)]
    tasks.sort(key=lambda task: task.name)
    dataset = dataset_of(found.name, found.version, found.description, tasks)
    return await installation.store.tasks.save_dataset(dataset, installation.clock())


async def backup_database(settings: Settings, target: Path) -> None:
    """Writes a consistent copy of the database. The service may keep running."""
    await backup(settings.store_url, target)


async def restore_database(settings: Settings, source: Path, force: bool) -> Path | None:
    """Replaces the database by a backup. Renames an existing database and returns its new path."""
    present = settings.home / "seatrial.db"
    kept = None
    if not settings.database_url and present.exists():
        if not force:
            raise Conflict(
                f"There is a database in {settings.home}.", fix="Add --force; the database is renamed and kept."
            )
        kept = present.with_name(f"{present.name}.before-{system_clock():%Y%m%d-%H%M%S-%f}")
        await set_aside(settings.store_url, kept)
    await restore(settings.store_url, source)
    return kept


def model_names() -> frozenset[str]:
    """The models that LiteLLM lists."""
    return listed_models()


def celery_tools(settings: Settings) -> Celery:
    """The app that Celery's own programs load."""
    from seatrial.adapters.wake_up_celery.app import celery_app

    return celery_app(settings.broker_url)
