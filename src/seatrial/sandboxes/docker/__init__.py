"""The docker sandbox's machinery: a container engine's API, containers, files, grading beside the agent, leftovers."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Imports the environment, and Harbor with it, only when the stock CLI or a trial names it."""
    if name == "DockerEnvironment":
        from seatrial.sandboxes.docker.environment import DockerEnvironment

        return DockerEnvironment
    raise AttributeError(name)
