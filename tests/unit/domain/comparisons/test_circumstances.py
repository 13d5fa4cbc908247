"""What else differs between the sides of a comparison."""

from __future__ import annotations

from typing import Any

from seatrial.domain.comparisons.circumstances import Circumstances, Trait, traits
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.model_calls.replay import Replay
from seatrial.domain.reports.fact import Counts
from seatrial.domain.result import Lock
from seatrial.domain.task import TaskRef

TASK = TaskRef(name="t", digest="sha256:" + "a" * 64)


def lock(**more: Any) -> Lock:
    usual = {"seatrial": "1", "harbor": "1", "task_digest": TASK.digest, "sandbox": "oci", "image_digest": "sha256:i"}
    return Lock(**{**usual, "protections": ("seccomp", "nodev"), **more})


def ran(*locks: Lock, agent: AgentSpec | None = None, counts: Counts | None = None, **spec: Any) -> Circumstances:
    agent = agent or AgentSpec(name="a", model="m", options={"temperature": 0})
    made = JobSpec(tasks=(TASK,), agents=(agent,), **spec)
    return Circumstances(spec=made, agent=agent, counts=counts or Counts(planned=2, valid=2), locks=locks)


def differing(*sides: Circumstances) -> dict[str, tuple[str, ...]]:
    return {each.name: each.values for each in traits(sides) if each.differs}


def test_equal_sides_differ_in_nothing() -> None:
    assert differing(ran(lock()), ran(lock())) == {}
    assert len(traits([ran(lock()), ran(lock())])) > 10, "but all is told"


def test_configuration_versions_and_infrastructure() -> None:
    one = ran(lock(limits={"cpus": 1}), lock(limits={"cpus": 1}), attempts=2)
    agent = AgentSpec(name="a", model="n", options={"temperature": 1, "max_turns": 5})
    other = ran(
        lock(limits={"cpus": 2}, sandbox="docker", agent_version="2", protections=("seccomp",)),
        lock(limits={"cpus": 1}, sandbox="docker", agent_version="2", image_digest="sha256:j"),
        agent=agent,
    )
    assert differing(one, other) == {
        "model": ("m", "n"),
        "option temperature": ("0", "1"),
        "option max_turns": ("", "5"),
        "attempts": ("2", "1"),
        "agent version": ("", "2"),
        "sandbox": ("oci", "docker"),
        "limit cpus": ("1", "1 (1), 2 (1)"),
        "further protections": ("nodev", "nodev (1 of 2)"),
        "image": ("the same", "another in 1 of 1 tasks"),
    }


def test_trouble_that_one_side_had_is_zero_on_the_other() -> None:
    bad = Counts(planned=4, valid=2, errors={"sandbox": 2}, marks={"agent_timeout": 1})
    found = differing(ran(counts=bad), ran(counts=Counts(planned=4, valid=4)))
    assert found == {
        "valid trials": ("2 of 4", "all"),
        "errors: sandbox": ("2", "0"),
        "marks: agent_timeout": ("1", "0"),
    }


def test_a_value_from_an_agent_is_cut() -> None:
    [found] = [each for each in traits([ran(lock(agent_version="x" * 10_000)), ran()]) if each.name == "agent version"]
    assert isinstance(found, Trait) and len(found.values[0]) == 300


def test_a_replayed_side_is_told() -> None:
    assert differing(ran(), ran(replay=Replay(trial=7))) == {"answers of the model": ("new", "replayed from trial 7")}
