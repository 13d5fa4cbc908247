"""The numbers of ``/metrics``: they are those of the trials, and their labels do not grow with what is asked."""

from __future__ import annotations

from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from seatrial.domain.result import PhaseTiming, Result, Usage
from seatrial.domain.trial import Cause, Outcome, Phase
from seatrial.ports.runner import Order
from seatrial.testing.fake_runner import FakeRunner
from tests.integration.operations.conftest import Api

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
STARTED = PhaseTiming(phase=Phase.START, started_at=NOON, seconds=0.5)
PASSED = Result(
    outcome=Outcome.PASSED,
    rewards={"reward": 1.0},
    timings=(STARTED, PhaseTiming(phase=Phase.AGENT, started_at=NOON, seconds=2.0)),
    usage=Usage(input_tokens=100, cached_tokens=40, output_tokens=7, cost_usd=0.25, model_calls=3),
)
BROKEN = Result(outcome=Outcome.ERROR, cause=Cause.LLM, message="The model's service is down.", timings=(STARTED,))


def every_third_breaks(order: Order) -> Result:
    return BROKEN if order.trial.attempt % 3 == 0 else PASSED


async def numbers(api: Api) -> dict[str, float]:
    """Each sample as it is written, without its help."""
    answer = await api.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        sample.name + "".join(f" {name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


async def test_trials_are_counted_whoever_ran_them(api: Api) -> None:
    await api.work_off(await api.submit(3), FakeRunner(every_third_breaks))
    told = await numbers(api)
    assert told["seatrial_jobs_created_total"] == 1
    assert told["seatrial_trials_ended_total cause= outcome=passed"] == 2
    assert told["seatrial_trials_ended_total cause=llm outcome=error"] == 1
    assert told["seatrial_trials_retried_total cause=llm"] == 1
    assert told["seatrial_sandbox_starts_total"] == 4, "the one that was tried again started twice"
    assert told["seatrial_model_calls_total"] == 6
    assert told["seatrial_model_tokens_total kind=input"] == 200
    assert told["seatrial_model_tokens_total kind=cached"] == 80
    assert told["seatrial_model_tokens_total kind=output"] == 14
    assert told["seatrial_model_cost_usd_total"] == 0.5
    assert told["seatrial_phase_seconds_count phase=agent"] == 2
    assert told["seatrial_phase_seconds_sum phase=agent"] == 4
    assert told["seatrial_phase_seconds_bucket le=1.0 phase=agent"] == 0
    assert told["seatrial_trial_seconds_count outcome=passed"] == 2
    again = await numbers(api)
    assert {name: again[name] for name in told if "_http_" not in name and "_free_" not in name} == {
        name: value for name, value in told.items() if "_http_" not in name and "_free_" not in name
    }, "nothing counts twice"


async def test_what_waits_is_told_with_those_who_could_work(api: Api) -> None:
    await api.submit(6)
    told = await numbers(api)
    assert (told["seatrial_queue_depth"], told["seatrial_trials_running"]) == (6, 0)
    assert told["seatrial_backlog_per_worker"] == 6
    assert told["seatrial_workers state=working"] == 0
    assert told["seatrial_home_free_bytes"] > 0
    async with api.worker(FakeRunner(seconds=60), capacity=2):
        while (told := await numbers(api))["seatrial_trials_running"] < 2 or not told["seatrial_workers state=working"]:
            pass
        assert (told["seatrial_queue_depth"], told["seatrial_worker_capacity"]) == (4, 2)
        await api.installation.store.jobs.cancel(1, api.installation.clock())


async def test_requests_are_counted_by_route_and_not_by_path(api: Api) -> None:
    for number in range(20):
        await api.get(f"/no/such/place/{number}")
        await api.client.request(f"ODD{number}", "/health")
        await api.get(f"/api/v1/jobs/{number + 1}")
    await api.get("/health")
    told = await numbers(api)
    counted = {name: value for name, value in told.items() if name.startswith("seatrial_http_requests_total")}
    assert counted["seatrial_http_requests_total method=GET route=/health status=200"] == 1
    assert counted["seatrial_http_requests_total method=GET route=/api/v1/jobs/{job_id} status=404"] == 20
    assert sum(counted.values()) == 61
    assert len(counted) <= 5
