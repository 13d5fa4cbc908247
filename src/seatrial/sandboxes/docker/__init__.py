"""The docker sandbox's machinery: a container engine's API, containers, files, grading beside the agent, leftovers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.sandboxes.docker.environment import DockerEnvironment

__all__ = ["DockerEnvironment"]


def __getattr__(name: str) -> Any:
    """Load the environment, and Harbor with it, only when the stock CLI or a trial asks for it by name."""
    if name == "DockerEnvironment":
        from seatrial.sandboxes.docker.environment import DockerEnvironment

        return DockerEnvironment
    raise AttributeError(name)
