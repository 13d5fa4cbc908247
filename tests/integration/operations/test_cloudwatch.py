"""The signals of autoscalers in CloudWatch, over HTTP to a server that speaks its protocol."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.session import Session
from moto.server import ThreadedMotoServer

from seatrial.adapters.aws_calls import AwsCalls
from seatrial.adapters.cloudwatch import CloudWatch
from seatrial.domain.trial import Outcome
from seatrial.errors import ServiceUnavailable
from seatrial.ports.store import TrialFilter
from seatrial.settings import Settings
from seatrial.testing.fake_runner import FakeRunner
from tests.integration.operations.conftest import opened
from tests.integration.operations.test_fleet import a_fleet
from tests.waiting import eventually

REGION = "eu-central-1"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")


@pytest.fixture
def cloudwatch(endpoint: str, credentials: None) -> Any:
    return Session().create_client("cloudwatch", region_name=REGION, endpoint_url=endpoint)


def last_value(cloudwatch: Any, namespace: str, name: str) -> float | None:
    now = datetime.now(UTC)
    found = cloudwatch.get_metric_statistics(
        Namespace=namespace,
        MetricName=name,
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(hours=1),
        Period=7200,
        Statistics=["Maximum"],
    )
    return max((point["Maximum"] for point in found["Datapoints"]), default=None)


async def test_values_arrive_under_their_names_with_their_units(endpoint: str, cloudwatch: Any) -> None:
    sink = CloudWatch(AwsCalls.to("cloudwatch", REGION, endpoint), "Seatrial/one")
    await sink.publish({"seatrial_work_units": 2.5, "seatrial_queue_oldest_seconds": 7.0})
    assert last_value(cloudwatch, "Seatrial/one", "seatrial_work_units") == 2.5
    assert last_value(cloudwatch, "Seatrial/one", "seatrial_queue_oldest_seconds") == 7.0
    metrics = cloudwatch.list_metrics(Namespace="Seatrial/one")["Metrics"]
    assert {metric["MetricName"]: metric["Dimensions"] for metric in metrics} == {
        "seatrial_work_units": [],
        "seatrial_queue_oldest_seconds": [],
    }


async def test_a_server_that_is_away_is_said_so(credentials: None) -> None:
    sink = CloudWatch(AwsCalls.to("cloudwatch", REGION, "http://127.0.0.1:9"), "Seatrial/away")
    with pytest.raises(ServiceUnavailable, match="cloudwatch put_metric_data"):
        await sink.publish({"seatrial_work_units": 1.0})


def publishing(place: Path, namespace: str) -> Settings:
    told = {"cloudwatch_namespace": namespace, "cloudwatch_sec": 0.2, "aws_region": REGION}
    return a_fleet(place).model_copy(update=told)


async def test_the_api_publishes_what_it_tells(
    tmp_path: Path, endpoint: str, cloudwatch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", endpoint)
    async with opened(publishing(tmp_path, "Seatrial/two"), tmp_path) as api:
        await api.submit(18)

        def values() -> list[float | None]:
            names = ("seatrial_desired_workers", "seatrial_work_units")
            return [last_value(cloudwatch, "Seatrial/two", name) for name in names]

        await eventually(lambda: values() == [2.0, 2.0], "the desired count is published, and the work beside it")


async def test_trials_end_and_the_api_answers_while_cloudwatch_is_away(
    tmp_path: Path, credentials: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS 33."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDWATCH", "http://127.0.0.1:9")
    async with opened(publishing(tmp_path, "Seatrial/three"), tmp_path) as api:
        await api.work_off(await api.submit(3), FakeRunner())
        assert (await api.get("/api/v1/fleet")).json()["desired_workers"] == 0
        outcomes = [row.trial.outcome async for row in api.installation.store.trials.each(TrialFilter())]
        assert outcomes == [Outcome.PASSED] * 3
