"""Seatrial runs Terminal-Bench tasks at scale and keeps all results and files.

``__all__`` lists the public names. They are imported on first use, so that ``seatrial --help`` starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.client import AgentRequest as AgentRequest
    from seatrial.client import AsyncClient as AsyncClient
    from seatrial.client import Client as Client
    from seatrial.client import DatasetRequest as DatasetRequest
    from seatrial.client import JobRequest as JobRequest
    from seatrial.client import TaskSelection as TaskSelection

__version__ = "0.1.0"
__all__ = [
    "AgentRequest",
    "AsyncClient",
    "Client",
    "DatasetRequest",
    "JobRequest",
    "TaskSelection",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("seatrial.client"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
