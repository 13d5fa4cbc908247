"""What is added to Harbor's result: marks of what the sandbox saw, waits for the model's service, and a replay.

Pure, except for ``facts_of``, which asks the trial's sandbox.
"""

from __future__ import annotations

from harbor.trial.trial import Trial

from seatrial.adapters.runner_harbor.equipment import Equipment
from seatrial.domain.result import Result, grade
from seatrial.domain.suffered import Suffered
from seatrial.domain.trial import Cause, Mark, Outcome
from seatrial.engine.model_patience import ModelHealth
from seatrial.sandboxes.facts import SandboxFacts
from seatrial.sandboxes.sandbox import Sandbox

_NOTICEABLE_SEC = 1.0
_SUSPICIONS = (Mark.SUSPECT_PATH, Mark.SUSPECT_PYTHON, Mark.SUSPECT_SHELL)


def facts_of(trial: Trial | None) -> SandboxFacts:
    environment = getattr(trial, "agent_environment", None)
    return environment.facts if isinstance(environment, Sandbox) else SandboxFacts()


def with_waits(result: Result, health: ModelHealth | None) -> Result:
    """Adds how long the agent's calls waited for their turn at the provider."""
    waited = health.pace_wait_sec if health is not None else 0.0
    if not waited:
        return result
    marks = (*result.marks, Mark.THROTTLED) if waited >= _NOTICEABLE_SEC else result.marks
    suffered = result.suffered.model_copy(update={"pace_wait_sec": round(waited, 3)})
    return result.model_copy(update={"marks": marks, "suffered": suffered})


def unless_given_up(result: Result, health: ModelHealth) -> Result:
    """An agent that failed after its last call got no answer did not fail by itself, however it ended."""
    if result.outcome is not Outcome.FAILED or health.given_up is None:
        return result
    return result.model_copy(update={"outcome": Outcome.ERROR, "cause": Cause.LLM, "message": str(health.given_up)})


def graded_over_budget(result: Result) -> Result:
    """An agent that its budget ended is graded like any other. To the agent, the refusal looked like a failure of the
    model's service, which would be an error."""
    if result.outcome is not Outcome.ERROR or result.cause is not Cause.LLM or not result.rewards:
        return result
    return result.model_copy(update={"outcome": grade(result.rewards), "cause": None})


def with_replay(result: Result, equipment: Equipment | None, *, is_kept: bool = False) -> Result:
    """Adds how the model calls were answered from a record. A miss ended the agent, so its grade says nothing.

    ``is_kept``: the agent ran in an earlier try, whose worker counted."""
    calls = equipment.calls if equipment is not None else None
    if equipment is None or calls is None or calls.replayed is None:
        return result
    marks = tuple(dict.fromkeys((*result.marks, Mark.REPLAYED)))
    result = result.model_copy(update={"marks": marks, "replay": None if is_kept else calls.replayed})
    if equipment.replay_failure is None:
        return result
    words = {"outcome": Outcome.ERROR, "cause": Cause.REPLAY, "message": equipment.replay_failure}
    return result.model_copy(update=words)


def suffered_of(known: Suffered, facts: SandboxFacts, health: ModelHealth | None) -> Suffered:
    """Adds what the sandbox and the agent's model calls measured."""
    found = {
        "throttled_sec": facts.strain.throttled_sec,
        "memory_pressure": facts.strain.memory_pressure,
        "model_wait_sec": round(health.waited_sec, 3) if health is not None and health.calls else None,
    }
    return known.model_copy(update={name: value for name, value in found.items() if value is not None})


def with_facts(marks: tuple[Mark, ...], facts: SandboxFacts) -> tuple[Mark, ...]:
    """Adds the marks that follow from what the sandbox observed."""
    seen = list(marks)
    if facts.memory_killed:
        seen.append(Mark.MEMORY_KILL)
    if any(entry.startswith("limits not enforced") for entry in facts.not_applied):
        seen.append(Mark.LIMITS_NOT_ENFORCED)
    if any(entry.startswith("privileged") for entry in facts.protections + facts.not_applied):
        seen.append(Mark.PRIVILEGED)
    seen.extend(mark for mark in _SUSPICIONS if mark.value in facts.suspicions)
    return tuple(dict.fromkeys(seen))
