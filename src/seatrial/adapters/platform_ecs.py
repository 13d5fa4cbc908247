"""A worker in a task of an ECS service, protected by the task scale-in protection endpoint of its ECS agent.

The agent tells each container its address; no credentials are needed. The protection expires by itself, so that a
worker that died does not keep its task forever.
"""

from __future__ import annotations

from typing import Any

import httpx

from seatrial.errors import ProtectionRefused, ServiceUnavailable

_PATIENCE_SEC = 10.0
_EXPIRES_MINUTES = 60


class EcsTask:
    """The task of this worker."""

    def __init__(
        self, agent_uri: str, expires_minutes: int = _EXPIRES_MINUTES, patience_sec: float = _PATIENCE_SEC
    ) -> None:
        self._url = f"{agent_uri.rstrip('/')}/task-protection/v1/state"
        self._expires_minutes = expires_minutes
        self._patience_sec = patience_sec

    @property
    def renew_sec(self) -> float:
        """Three renewals may fail before the protection expires."""
        return self._expires_minutes * 60 / 4

    async def protect(self) -> None:
        told = await self._put({"ProtectionEnabled": True, "ExpiresInMinutes": self._expires_minutes})
        if told.get("protection", {}).get("ProtectionEnabled") is not True:
            raise ProtectionRefused(f"ECS does not protect this task: {_reason(told)}")

    async def release(self) -> None:
        told = await self._put({"ProtectionEnabled": False})
        if told.get("protection", {}).get("ProtectionEnabled") is not False:
            raise ServiceUnavailable(f"ECS did not release the protection of this task: {_reason(told)}")

    async def _put(self, wish: dict[str, object]) -> dict[str, Any]:
        try:
            async with httpx.AsyncClient(timeout=self._patience_sec, trust_env=False) as client:
                answer = await client.put(self._url, json=wish)
                told = answer.json()
        except (httpx.HTTPError, ValueError) as fault:
            raise ServiceUnavailable(f"The ECS agent does not answer: {fault!r}") from fault
        if not isinstance(told, dict) or answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise ServiceUnavailable(f"The ECS agent answers {answer.status_code}.")
        return told


def _reason(told: dict[str, Any]) -> str:
    """The agent reports a ``failure`` of ECS, or an ``error`` of the request."""
    failure, error = told.get("failure"), told.get("error")
    if isinstance(failure, dict):
        return f"{failure.get('Reason', '')} {failure.get('Detail') or ''}".strip()
    if isinstance(error, dict):
        return f"{error.get('Code', '')} {error.get('Message', '')}".strip()
    return "it confirmed nothing."
