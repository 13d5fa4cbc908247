"""A Seatrial service from Python, typed, with and without an event loop.

Verbs are written once, as functions that describe requests (``ask``); a driver in a thread and one on an event loop
carry them out. Answers are the shapes that the API answers with, errors are those of ``seatrial.errors``.
"""

from seatrial.client.ask import Progress, Sent
from seatrial.client.client import AsyncClient, Client
from seatrial.client.messages import Message
from seatrial.client.trials import LogPart
from seatrial.domain.task import TaskSelection
from seatrial.shapes.datasets import DatasetRequest
from seatrial.shapes.jobs import AgentRequest, JobRequest

__all__ = [
    "AgentRequest",
    "AsyncClient",
    "Client",
    "DatasetRequest",
    "JobRequest",
    "LogPart",
    "Message",
    "Progress",
    "Sent",
    "TaskSelection",
]
