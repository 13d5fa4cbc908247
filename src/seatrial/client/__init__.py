"""Python client of a Seatrial service, typed, synchronous and asynchronous.

Each method is written once, as a function that describes a request (``ask``). A synchronous and an asynchronous driver
execute them. Answers are the API's models; errors are those of ``seatrial.errors``.
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
