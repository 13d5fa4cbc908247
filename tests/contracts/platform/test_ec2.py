"""An instance of an Auto Scaling group: its notices, and how it goes. On moto and a metadata service of our own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from seatrial.adapters.platform_ec2 import Ec2Group, Ec2Notices, InstanceMetadata
from seatrial.errors import ServiceUnavailable
from tests.contracts.platform.conftest import Group
from tests.contracts.platform.servers import AutoScalingActions, Metadata, serving
from tests.waiting import LIMIT_SEC

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def spot(at: datetime) -> dict[str, str]:
    return {"spot/instance-action": f'{{"action": "terminate", "time": "{at:%Y-%m-%dT%H:%M:%SZ}"}}'}


async def looked(metadata: Metadata) -> tuple[str, float | None] | None:
    with serving(metadata) as url:
        notice = await Ec2Notices(InstanceMetadata(url, LIMIT_SEC)).look()
    return None if notice is None else (notice.reason, notice.within_sec)


@pytest.mark.parametrize("state", [None, "InService", "Warmed:Running"])
async def test_an_instance_that_stays_has_no_notice(state: str | None) -> None:
    assert await looked(Metadata({} if state is None else {"autoscaling/target-lifecycle-state": state})) is None


@pytest.mark.parametrize("state", ["Terminated", "Detached"])
async def test_the_group_ends_the_instance_and_waits_for_it(state: str) -> None:
    metadata = Metadata({"autoscaling/target-lifecycle-state": state})
    assert await looked(metadata) == ("The Auto Scaling group ends this instance.", None)


@pytest.mark.parametrize(("left", "told"), [(120, 100), (70, 50), (10, 0), (-60, 0), (86400, 120)])
async def test_an_interruption_leaves_time_to_give_back(left: int, told: float) -> None:
    """By the clock of the metadata service: the one of the machine is years away."""
    metadata = Metadata(spot(NOON + timedelta(seconds=left)))
    metadata.now = NOON
    assert await looked(metadata) == ("EC2 interrupts this spot instance.", told)


@pytest.mark.parametrize("text", ["", "soon", "[]", '{"action": "stop"}', '{"time": 7}', '{"time": "tomorrow"}'])
async def test_an_interruption_that_cannot_be_read_still_drains(text: str) -> None:
    found = await looked(Metadata({"spot/instance-action": text}))
    assert found is not None
    assert found[1] == 60


async def test_a_token_is_used_until_it_is_refused() -> None:
    metadata = Metadata({"autoscaling/target-lifecycle-state": "InService"})
    with serving(metadata) as url:
        notices = Ec2Notices(InstanceMetadata(url, LIMIT_SEC))
        await notices.look()
        await notices.look()
        assert metadata.tokens_given == 1
        metadata.token = "token-2"
        await notices.look()
        assert metadata.tokens_given == 2
        metadata.is_away = True
        with pytest.raises(ServiceUnavailable):
            await notices.look()


async def test_after_an_idle_leave_the_group_wants_one_less(group: Group, instance: Ec2Group) -> None:
    assert (group.row["DesiredCapacity"], len(group.instances)) == (2, 2)
    await instance.end_machine()
    assert group.row["DesiredCapacity"] == 1
    assert group.instance not in group.instances


async def test_after_a_drain_the_group_goes_on_with_the_termination(credentials: None) -> None:
    actions, metadata = AutoScalingActions("fleet"), Metadata({"instance-id": "i-1", "placement/region": "us-east-1"})
    with serving(actions) as endpoint, serving(metadata) as url:
        there = InstanceMetadata(url, LIMIT_SEC)
        await (await Ec2Group.of_this_instance(there, endpoint=endpoint)).drained()
        assert actions.bodies == [], "without a hook nothing waits"
        await (await Ec2Group.of_this_instance(there, lifecycle_hook="drain", endpoint=endpoint)).drained()
    last = dict(field.split("=") for field in actions.bodies[-1].split("&"))
    assert last["Action"] == "CompleteLifecycleAction"
    assert (last["LifecycleHookName"], last["AutoScalingGroupName"]) == ("drain", "fleet")
    assert (last["InstanceId"], last["LifecycleActionResult"]) == ("i-1", "CONTINUE")
