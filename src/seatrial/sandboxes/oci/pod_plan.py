"""What one daemonless sandbox shall be. ``design`` makes the plan, ``pod`` and ``pod_directory`` carry it out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seatrial.sandboxes.images.image import Image
from seatrial.sandboxes.oci.cgroups import Limits
from seatrial.sandboxes.oci.memory_dirs import MemoryDir
from seatrial.sandboxes.options import Owner


@dataclass(frozen=True, slots=True)
class PodPlan:
    """What a pod shall be."""

    sandbox: str
    owner: Owner
    image: Image
    limits: Limits
    hostname: str = "sandbox"
    hosts: str = "127.0.0.1\tlocalhost\n"
    resolv_conf: str = ""
    network: Path | None = None
    host_network: bool = False
    privileged: bool = False
    open_dirs: tuple[str, ...] = ()
    """Directories that every user may write to."""
    workdir: str | None = None
    shared_memory_mb: int = 64
    memory_dirs: tuple[MemoryDir, ...] = ()
    not_applied: tuple[str, ...] = ()
    """What the task asks for and does not get, known beforehand."""
