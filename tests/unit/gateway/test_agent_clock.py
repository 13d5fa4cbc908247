"""The agent's clock stands still only while the agent can do nothing but wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seatrial.gateway.agent_clock import AgentClock
from seatrial.gateway.trial_calls import TrialCalls


class Watch:
    def __init__(self) -> None:
        self.stands = 0

    @contextmanager
    def stop(self) -> Iterator[None]:
        self.stands += 1
        try:
            yield
        finally:
            self.stands -= 1


def test_it_stands_while_the_only_call_waits() -> None:
    watch = Watch()
    clock = AgentClock(watch.stop)
    with clock.call():
        assert watch.stands == 0
        with clock.waiting():
            assert watch.stands == 1
        assert watch.stands == 0


def test_it_runs_while_another_call_is_answered() -> None:
    watch = Watch()
    clock = AgentClock(watch.stop)
    with clock.call(), clock.waiting():
        with clock.call():
            assert watch.stands == 0
            with clock.waiting():
                assert watch.stands == 1
            assert watch.stands == 0
        assert watch.stands == 1
    assert watch.stands == 0


def test_without_a_clock_nothing_stops() -> None:
    clock = AgentClock()
    with clock.call(), clock.waiting():
        pass


def test_by_a_setting_the_clock_runs_on(tmp_path: Path) -> None:
    watch = Watch()
    counted, stopped = TrialCalls(tmp_path, stops_clock=False), TrialCalls(tmp_path)
    for calls in (counted, stopped):
        calls.begins(watch.stop)
    with counted.clock.call(), counted.clock.waiting():
        assert watch.stands == 0
    with stopped.clock.call(), stopped.clock.waiting():
        assert watch.stands == 1
