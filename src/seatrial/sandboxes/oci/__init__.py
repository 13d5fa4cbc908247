"""The daemonless sandbox's machinery: containers over an overlay, limits, threads with their own mount namespace."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Imports the environment, and Harbor with it, only when the stock CLI or a trial names it."""
    if name == "OciEnvironment":
        from seatrial.sandboxes.oci.environment import OciEnvironment

        return OciEnvironment
    raise AttributeError(name)
