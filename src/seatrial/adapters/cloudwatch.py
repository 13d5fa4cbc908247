"""Publishes signals to CloudWatch, under one namespace and without dimensions."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.adapters.aws_calls import AwsCalls


class CloudWatch:
    def __init__(self, calls: AwsCalls, namespace: str) -> None:
        self._calls = calls
        self._namespace = namespace

    async def publish(self, values: Mapping[str, float]) -> None:
        """The time is CloudWatch's own: a machine whose clock is off would publish into the past."""
        data = [{"MetricName": name, "Value": value, "Unit": _unit(name)} for name, value in values.items()]
        await self._calls.call("put_metric_data", Namespace=self._namespace, MetricData=data)


def _unit(name: str) -> str:
    return "Seconds" if name.endswith("_seconds") else "Count"
