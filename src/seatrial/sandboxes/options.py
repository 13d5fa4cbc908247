"""What the operator decided about sandboxes, as plain data that can travel inside a Harbor configuration.

Harbor hands an environment its keyword arguments as JSON and writes them into the trial's directory, so nothing in here
is a secret. From the stock ``harbor`` CLI no options come, and ``of(Settings())`` supplies them.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import AliasChoices, Field

from seatrial.domain.frozen import Frozen
from seatrial.settings import Settings


class Owner(Frozen):
    """Whose sandbox it is: the labels that leftovers are found by."""

    install: str = "stock"
    """Id of the home that runs the trial; ``stock`` for sandboxes started by the plain ``harbor`` CLI."""
    trial: int | None = None
    try_number: int | None = Field(default=None, validation_alias=AliasChoices("try_number", "attempt"))
    """``attempt`` in the records of sandboxes that an earlier version left behind."""


class SandboxOptions(Frozen):
    """The operator's settings that sandboxes and images obey; see ``Settings`` for their meaning."""

    cache: Path
    default_cpus: float = 1.0
    default_memory_mb: int = 2048
    default_pids: int = 2048
    network_mode: str = "bridge"
    allow_host_network: bool = False
    allow_privileged: bool = False
    allow_private_network: bool = False
    private_destinations: str = ""
    docker_registry: str = ""
    default_registry: str = ""
    pull_if_not_exists: bool = True
    bootstrap_bases: bool = True
    debian_mirror: str = ""
    extra_ca_file: Path | None = None
    image_registries: str = ""
    allow_host_network_builds: bool = False
    max_build_sec: float = 3600.0
    max_build_memory_mb: int = 8192
    max_build_cpus: float = 0.0
    max_build_pids: int = 4096
    max_build_disk_mb: int = 20480
    image_low_water_gb: float = 5.0
    docker_host: str = ""
    oci_runtime: str = ""
    max_kept_files: int = 10_000
    max_kept_mb: int = 1024
    max_kept_depth: int = 64

    @classmethod
    def of(cls, settings: Settings) -> SandboxOptions:
        return cls(**{name: getattr(settings, name) for name in cls.model_fields})

    @property
    def images_dir(self) -> Path:
        return self.cache / "images"

    @property
    def kits_dir(self) -> Path:
        """Agent kits."""
        return self.cache / "kits"

    @property
    def run_dir(self) -> Path:
        """One directory per living sandbox, with its owner written beside its state."""
        return self.cache / "run"
