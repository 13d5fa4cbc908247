"""Platforms under test: the fake, an ECS agent, an Auto Scaling group of moto, and two processes on one machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from botocore.session import Session
from moto.server import ThreadedMotoServer

from seatrial.adapters.platform_ec2 import Ec2Group, InstanceMetadata
from seatrial.adapters.platform_ecs import EcsTask
from seatrial.adapters.platform_shared import MachineLock, SharedProtection
from seatrial.ports.platform import ScaleInProtection
from seatrial.testing.fake_platform import FakePlatform
from tests.contracts.platform.servers import EcsAgent, Front, Metadata, serving
from tests.waiting import LIMIT_SEC

REGION = "eu-central-1"


@dataclass
class Place:
    """A machine of the platform, and what the platform itself says about it."""

    protection: ScaleInProtection
    is_protected: Callable[[], bool]
    begin_to_end: Callable[[], object]
    """The platform has chosen this machine."""
    go_away: Callable[[], object]
    """The platform does not answer any more."""


@pytest.fixture(scope="session")
def aws() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def scaling(aws: str) -> Any:
    """The administrator's own client."""
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    return Session().create_client("autoscaling", region_name=REGION, endpoint_url=aws, **keys)


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


class Group:
    """An Auto Scaling group with one instance, in moto."""

    def __init__(self, scaling: Any, name: str) -> None:
        self.name = name
        self.scaling = scaling
        scaling.create_launch_configuration(
            LaunchConfigurationName=name, ImageId="ami-03cf127a", InstanceType="m5.large"
        )
        scaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchConfigurationName=name,
            MinSize=0,
            MaxSize=5,
            DesiredCapacity=2,
            AvailabilityZones=[f"{REGION}a"],
        )
        self.instance: str = self.row["Instances"][0]["InstanceId"]

    @property
    def row(self) -> dict[str, Any]:
        asked = {"AutoScalingGroupNames": [self.name]}
        (row,) = self.scaling.describe_auto_scaling_groups(**asked)["AutoScalingGroups"]
        return dict(row)

    @property
    def instances(self) -> dict[str, bool]:
        """Each with whether it is protected."""
        return {one["InstanceId"]: one["ProtectedFromScaleIn"] for one in self.row["Instances"]}

    def end(self) -> None:
        self.scaling.terminate_instance_in_auto_scaling_group(
            InstanceId=self.instance, ShouldDecrementDesiredCapacity=True
        )


@pytest.fixture
def group(scaling: Any, credentials: None) -> Group:
    return Group(scaling, f"group-{uuid4().hex[:8]}")


@pytest.fixture
def metadata(group: Group) -> Metadata:
    return Metadata({"instance-id": group.instance, "placement/region": REGION})


@pytest.fixture
def front(aws: str) -> Front:
    return Front(aws)


@pytest.fixture
async def instance(front: Front, metadata: Metadata) -> AsyncIterator[Ec2Group]:
    with serving(metadata) as url, serving(front) as endpoint:
        yield await Ec2Group.of_this_instance(InstanceMetadata(url, LIMIT_SEC), endpoint=endpoint)


@pytest.fixture(params=["fake", "shared", "ecs", "ec2"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with ExitStack() as stack:
        if request.param == "ecs":
            agent = EcsAgent()
            task = EcsTask(stack.enter_context(serving(agent)) + "/api/task-1", patience_sec=LIMIT_SEC)
            yield Place(
                task,
                lambda: agent.is_protected,
                lambda: setattr(agent, "refuses", True),
                lambda: setattr(agent, "is_away", True),
            )
        elif request.param == "ec2":
            group, front = request.getfixturevalue("group"), request.getfixturevalue("front")
            yield Place(
                request.getfixturevalue("instance"),
                lambda: group.instances.get(group.instance, False),
                group.end,
                lambda: setattr(front, "is_away", True),
            )
        else:
            platform = FakePlatform()
            machine = platform.add("m")
            shared = SharedProtection(machine, MachineLock(tmp_path / "busy"))
            yield Place(
                machine if request.param == "fake" else shared,
                lambda: platform.protected.get("m", False),
                lambda: platform.end("m"),
                lambda: setattr(platform, "is_away", True),
            )
