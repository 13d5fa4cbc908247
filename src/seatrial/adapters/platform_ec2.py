"""A worker on an instance of an EC2 Auto Scaling group.

Protection is the instance's own protection from scale-in. Notices come from the instance's metadata: a spot
interruption, or a termination that the group has begun. When an idle worker leaves, the group ends the instance and is
made one smaller. Only the worker asks the metadata service; sandboxes cannot reach it.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from seatrial.adapters.aws_calls import AwsCalls
from seatrial.engine.clock import Clock, system_clock
from seatrial.errors import ProtectionRefused, ServiceUnavailable
from seatrial.ports.platform import Notice

log = logging.getLogger(__name__)

_TOKEN_SEC = 21600
_PATIENCE_SEC = 2.0
_GIVE_BACK_SEC = 20.0
"""The last seconds of a spot machine, in which its trials go back to the queue."""
_SPOT_SEC = 120.0
"""A notice comes at most this long before the end."""


class InstanceMetadata:
    """The metadata service, version 2. A token is asked for once, and again when it is refused."""

    def __init__(self, url: str, patience_sec: float = _PATIENCE_SEC) -> None:
        self.url = url.rstrip("/")
        self._patience_sec = patience_sec
        self._token = ""

    async def read(self, path: str) -> tuple[str, datetime | None] | None:
        """A value with the time of the answer; ``None`` if there is no such value now."""
        try:
            async with httpx.AsyncClient(timeout=self._patience_sec, trust_env=False) as client:
                answer = await self._get(client, path)
                if answer.status_code == httpx.codes.UNAUTHORIZED:
                    self._token = ""
                    answer = await self._get(client, path)
                if answer.status_code == httpx.codes.NOT_FOUND:
                    return None
                answer.raise_for_status()
        except httpx.HTTPError as fault:
            raise ServiceUnavailable(f"The instance metadata at {self.url} cannot be read: {fault!r}") from fault
        return answer.text, _date(answer)

    async def value(self, path: str) -> str:
        found = await self.read(path)
        if found is None:
            raise ServiceUnavailable(f"The instance metadata has no {path}.")
        return found[0]

    async def _get(self, client: httpx.AsyncClient, path: str) -> httpx.Response:
        if not self._token:
            wish = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_SEC)}
            answer = await client.put(f"{self.url}/latest/api/token", headers=wish)
            answer.raise_for_status()
            self._token = answer.text
        headers = {"X-aws-ec2-metadata-token": self._token}
        return await client.get(f"{self.url}/latest/meta-data/{path}", headers=headers)


class Ec2Notices:
    def __init__(self, metadata: InstanceMetadata, clock: Clock = system_clock) -> None:
        self._metadata = metadata
        self._clock = clock

    async def look(self) -> Notice | None:
        interruption = await self._metadata.read("spot/instance-action")
        if interruption is not None:
            text, answered_at = interruption
            return Notice(
                reason="EC2 interrupts this spot instance.",
                within_sec=_left(text, answered_at or self._clock()),
            )
        state = await self._metadata.read("autoscaling/target-lifecycle-state")
        if state is not None and state[0].strip() in ("Terminated", "Detached"):
            return Notice(reason="The Auto Scaling group ends this instance.")
        return None


def _left(action: str, now: datetime) -> float:
    """Seconds for running trials. By the clock of the metadata service, because this machine's may be off."""
    try:
        ends_at = datetime.fromisoformat(str(json.loads(action)["time"])).astimezone(UTC)
    except (ValueError, KeyError, TypeError):
        log.warning("A notice of an interruption cannot be read: %.200r", action)
        return _SPOT_SEC / 2
    return min(max((ends_at - now).total_seconds() - _GIVE_BACK_SEC, 0.0), _SPOT_SEC)


def _date(answer: httpx.Response) -> datetime | None:
    try:
        return parsedate_to_datetime(answer.headers["date"]).astimezone(UTC)
    except (KeyError, ValueError, TypeError):
        return None


class Ec2Group:
    """This instance as a member of its Auto Scaling group: protection and departure."""

    renew_sec = None

    def __init__(self, instance: str, calls: AwsCalls, lifecycle_hook: str = "") -> None:
        """``calls`` are those to the Auto Scaling service of the instance's region."""
        self._instance = instance
        self._calls = calls
        self._hook = lifecycle_hook

    @classmethod
    async def of_this_instance(
        cls, metadata: InstanceMetadata, lifecycle_hook: str = "", endpoint: str = ""
    ) -> Ec2Group:
        """Raises ``ServiceUnavailable`` outside of EC2."""
        instance, region = await metadata.value("instance-id"), await metadata.value("placement/region")
        calls = AwsCalls.to("autoscaling", region, endpoint, metadata.url)
        return cls(instance, calls, lifecycle_hook)

    async def protect(self) -> None:
        """Checks it afterwards, because the group may have chosen this instance a moment before."""
        await self._set(True)
        row = await self._row()
        if row["LifecycleState"] != "InService" or not row["ProtectedFromScaleIn"]:
            raise ProtectionRefused(f"The instance {self._instance} is {row['LifecycleState']}, and not protected.")

    async def release(self) -> None:
        try:
            await self._set(False)
        except ProtectionRefused as gone:  # the group ends it already, or has forgotten it
            log.info("%s", gone)

    async def end_machine(self) -> None:
        action = "terminate_instance_in_auto_scaling_group"
        await self._calls.call(action, InstanceId=self._instance, ShouldDecrementDesiredCapacity=True)

    async def drained(self) -> None:
        """Lets the group go on with a termination that waits for the hook. Without a hook there is nothing to do."""
        if not self._hook:
            return
        await self._calls.call(
            "complete_lifecycle_action",
            LifecycleHookName=self._hook,
            AutoScalingGroupName=(await self._row())["AutoScalingGroupName"],
            InstanceId=self._instance,
            LifecycleActionResult="CONTINUE",
        )

    async def _set(self, wanted: bool) -> None:
        row = await self._row()
        await self._calls.call(
            "set_instance_protection",
            refused=ProtectionRefused,
            InstanceIds=[self._instance],
            AutoScalingGroupName=row["AutoScalingGroupName"],
            ProtectedFromScaleIn=wanted,
        )

    async def _row(self) -> dict[str, object]:
        found = await self._calls.call("describe_auto_scaling_instances", InstanceIds=[self._instance])
        rows: list[dict[str, object]] = found["AutoScalingInstances"]
        if not rows:
            raise ProtectionRefused(f"The instance {self._instance} belongs to no Auto Scaling group.")
        return rows[0]
