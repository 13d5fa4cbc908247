"""Harbor's result as ours. Grading stays Harbor's; what ended without a grade gets a cause, never a reward of 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path

from harbor.models.trial.result import ExceptionInfo, TimingInfo, TrialResult

from seatrial.adapters.runner_harbor.tests_found import tests_in
from seatrial.domain.result import Failure, PhaseTiming, Result, TestResult, Usage, grade
from seatrial.domain.trial import Cause, Mark, Outcome, Phase

Judge = Callable[[str, str], "Cause | Mark | None"]
"""What an exception (type name, message) means: a cause, a mark beside a grade, or nothing known."""

_LONGEST_TRACEBACK = 20_000


def result_of(trial: TrialResult, directory: Path, judge: Judge) -> Result:
    """The domain's result of a finished Harbor trial whose files are in ``directory``."""
    exceptions = list(_exceptions(trial))
    rewards = _rewards(trial)
    marks, cause, decisive = _judge_all(exceptions, judge)
    outcome, cause = _outcome(rewards, cause)
    graded = outcome is not Outcome.ERROR
    blame = decisive or (exceptions[0] if exceptions else None)
    return Result(
        outcome=outcome,
        rewards=rewards,
        cause=cause,
        marks=marks,
        message=_message(blame, graded),
        failure=_failure(blame),
        tests=_tests(trial, directory),
        steps={step.step_name: _finite(step.verifier_result) for step in trial.step_results or []},
        timings=tuple(_timings(trial)),
        usage=_usage(trial),
        seconds=_seconds(trial),
    )


def _exceptions(trial: TrialResult) -> Iterable[ExceptionInfo]:
    if trial.exception_info is not None:
        yield trial.exception_info
    for step in trial.step_results or []:
        if step.exception_info is not None:
            yield step.exception_info


def _rewards(trial: TrialResult) -> dict[str, float]:
    return _finite(trial.verifier_result)


def _finite(verified: object) -> dict[str, float]:
    """Only rewards that are finite numbers; a verifier that wrote anything else gave no valid reward at all."""
    rewards = getattr(verified, "rewards", None)
    if not isinstance(rewards, dict) or not rewards:
        return {}
    values = {str(name): value for name, value in rewards.items()}
    numbers = all(isinstance(value, (int, float)) and math.isfinite(value) for value in values.values())
    return {name: float(value) for name, value in values.items()} if numbers else {}


def _judge_all(
    exceptions: list[ExceptionInfo], judge: Judge
) -> tuple[tuple[Mark, ...], Cause | None, ExceptionInfo | None]:
    marks: list[Mark] = []
    for info in exceptions:
        meaning = judge(info.exception_type, info.exception_message)
        if isinstance(meaning, Mark):
            marks.append(meaning)
        else:
            return tuple(dict.fromkeys(marks)), meaning or Cause.AGENT, info
    return tuple(dict.fromkeys(marks)), None, None


def _outcome(rewards: dict[str, float], cause: Cause | None) -> tuple[Outcome, Cause | None]:
    """A fault makes a reward beside it worthless, except that a crashed agent's work was still graded."""
    if rewards and cause in (None, Cause.AGENT):
        return grade(rewards), None
    return Outcome.ERROR, cause or Cause.VERIFIER


def _message(info: ExceptionInfo | None, graded: bool) -> str:
    if info is None:
        return "" if graded else "The verifier gave no valid reward."
    first_line = (info.exception_message or "").strip().splitlines()[:1]
    return f"{info.exception_type}: {first_line[0]}" if first_line else info.exception_type


def _failure(info: ExceptionInfo | None) -> Failure | None:
    if info is None:
        return None
    trace = info.exception_traceback[-_LONGEST_TRACEBACK:]
    return Failure(type=info.exception_type, message=info.exception_message, traceback=trace)


def _tests(trial: TrialResult, directory: Path) -> tuple[TestResult, ...]:
    if not trial.step_results:
        return tests_in(directory / "verifier")
    found: list[TestResult] = []
    for step in trial.step_results:
        for test in tests_in(directory / "steps" / step.step_name / "verifier"):
            found.append(test.model_copy(update={"name": f"{step.step_name}: {test.name}"}))  # noqa: PERF401
    return tuple(found)


def _timings(trial: TrialResult) -> Iterable[PhaseTiming]:
    yield from _timing(Phase.START, trial.environment_setup)
    yield from _timing(Phase.AGENT_SETUP, trial.agent_setup)
    yield from _timing(Phase.AGENT, trial.agent_execution)
    yield from _timing(Phase.VERIFY, trial.verifier)
    for step in trial.step_results or []:
        yield from _timing(Phase.AGENT, step.agent_execution, step.step_name)
        yield from _timing(Phase.VERIFY, step.verifier, step.step_name)


def _timing(phase: Phase, timing: TimingInfo | None, step: str | None = None) -> Iterable[PhaseTiming]:
    if timing is not None and timing.started_at is not None and timing.finished_at is not None:
        seconds = (timing.finished_at - timing.started_at).total_seconds()
        yield PhaseTiming(phase=phase, started_at=timing.started_at, seconds=seconds, step=step)


def _seconds(trial: TrialResult) -> float:
    if trial.started_at is None or trial.finished_at is None:
        return 0.0
    return float((trial.finished_at - trial.started_at).total_seconds())


def _usage(trial: TrialResult) -> Usage:
    given, cached, produced, cost = trial.compute_token_cost_totals()
    contexts = [trial.agent_result, *(step.agent_result for step in trial.step_results or [])]
    metadata = [context.metadata or {} for context in contexts if context is not None]
    turns = [int(entry["n_episodes"]) for entry in metadata if isinstance(entry.get("n_episodes"), int)]
    calls = [len(entry["api_request_times_msec"]) for entry in metadata if "api_request_times_msec" in entry]
    return Usage(
        input_tokens=given,
        cached_tokens=cached,
        output_tokens=produced,
        cost_usd=cost,
        turns=sum(turns) if turns else None,
        model_calls=sum(calls) if calls else None,
    )
