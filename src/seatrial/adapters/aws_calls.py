"""Calls to AWS through botocore, which the extra ``seatrial[aws]`` installs. Imports it only when it is used.

botocore signs requests and finds credentials as every AWS tool does: environment, profile, container, instance role.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from seatrial.errors import ServiceUnavailable, SetupProblem

_CONNECT_SEC = 5
_READ_SEC = 10
_TRIES = 2
"""Callers are duties, which try again by themselves."""


class AwsCalls:
    """One service of AWS. botocore blocks, so each call runs in a thread."""

    def __init__(self, client: Any, service: str) -> None:
        self._client = client
        self._service = service

    @classmethod
    def to(cls, service: str, region: str = "", endpoint: str = "", metadata_url: str = "") -> AwsCalls:
        """Finds the credentials now: a worker removes variables from its environment later."""
        try:
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError
            from botocore.session import Session
        except ImportError as missing:
            raise SetupProblem("This needs botocore.", fix="pip install 'seatrial[aws]'") from missing
        session = Session()
        if metadata_url:
            session.set_config_variable("ec2_metadata_service_endpoint", metadata_url)
        config = Config(connect_timeout=_CONNECT_SEC, read_timeout=_READ_SEC, retries={"total_max_attempts": _TRIES})
        try:
            session.get_credentials()
            client = session.create_client(
                service, region_name=region or None, endpoint_url=endpoint or None, config=config
            )
        except BotoCoreError as fault:
            raise SetupProblem(f"AWS cannot be used: {fault}", fix="Set AWS_REGION.") from fault
        return cls(client, service)

    async def call(self, action: str, refused: Callable[[str], Exception] | None = None, **given: Any) -> Any:
        """``refused`` makes the error for a request that AWS understood and rejected. All others are
        ``ServiceUnavailable``."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return await asyncio.to_thread(getattr(self._client, action), **given)
        except ClientError as fault:
            told = fault.response.get("Error", {})
            words = f"{self._service} {action}: {told.get('Code', '')} {told.get('Message', '')}".strip()
            if refused is not None and told.get("Code") == "ValidationError":
                raise refused(words) from fault
            raise ServiceUnavailable(words) from fault
        except BotoCoreError as fault:
            raise ServiceUnavailable(f"{self._service} {action}: {fault}") from fault
