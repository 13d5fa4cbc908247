"""The daemonless sandbox's machinery: containers over an overlay, limits, threads with their own mount namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.sandboxes.oci.environment import OciEnvironment

__all__ = ["OciEnvironment"]


def __getattr__(name: str) -> Any:
    """Load the environment, and Harbor with it, only when the stock CLI or a trial asks for it by name."""
    if name == "OciEnvironment":
        from seatrial.sandboxes.oci.environment import OciEnvironment

        return OciEnvironment
    raise AttributeError(name)
