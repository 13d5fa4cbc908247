"""Converts Harbor's result into ours. Harbor grades; a trial without a grade gets a cause, never a reward of 0."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harbor.models.trial.result import ExceptionInfo, TimingInfo, TrialResult

from seatrial.adapters.causes import cause_of, mark_of, voids_failure
from seatrial.adapters.runner_harbor.tests_found import tests_in
from seatrial.domain.result import Failure, PhaseTiming, Result, TestResult, Usage, grade
from seatrial.domain.trial import Cause, Mark, Outcome, Phase
from seatrial.sandboxes.terminal.recording import repair_recording

_LONGEST_TRACEBACK = 20_000
_LONGEST_MESSAGE = 2_000
_LONGEST_NAME = 200
_MOST_REWARDS = 1_000
_MOST_TESTS = 5_000


async def read_result(trial: TrialResult, directory: Path, excuse: str | None = None) -> Result:
    """``result_of`` with paths as users see them. Runs in a thread, because reading a large test report takes long
    enough to delay the heartbeats of the worker. A cancellation comes too late by now: there is a grade."""

    def read() -> Result:
        _mend_recordings(directory)
        return without_host_paths(result_of(trial, directory, excuse), directory)

    reading = asyncio.ensure_future(asyncio.to_thread(read))
    while not reading.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({reading})
    return reading.result()


def result_of(trial: TrialResult, directory: Path, excuse: str | None = None) -> Result:
    """The result of a finished Harbor trial whose files are in ``directory``.

    ``excuse`` is set if the model's service failed. An agent that then ran out of time is not blamed."""
    verdict = _verdict(trial, excuse)
    return Result(
        outcome=verdict.outcome,
        rewards=_finite(trial.verifier_result),
        cause=verdict.cause,
        marks=verdict.marks,
        message=verdict.message,
        failure=_failure(verdict.blamed),
        tests=_tests(trial, directory),
        steps={step.step_name: _finite(step.verifier_result) for step in trial.step_results or []},
        timings=tuple(_timings(trial)),
        usage=usage_of(trial),
        seconds=seconds_of(trial) or 0.0,
    )


def without_host_paths(result: Result, directory: Path) -> Result:
    """Replaces the work directory of this machine in messages by the paths under which the files are saved."""
    failure = result.failure
    if failure is None and not result.message:
        return result
    if failure is not None:
        message, trace = _kept_paths(failure.message, directory), _kept_paths(failure.traceback, directory)
        failure = failure.model_copy(update={"message": message, "traceback": trace})
    return result.model_copy(update={"message": _kept_paths(result.message, directory), "failure": failure})


def _kept_paths(text: str, directory: Path) -> str:
    for place in {str(directory), str(directory.resolve())}:
        if place not in text:
            continue
        here = re.compile(rf"{re.escape(place)}(?:(/)|(?![\w-]))")  # skip longer names with the same start
        text = here.sub(lambda found: "" if found[1] else ".", text)
    return text


@dataclass(frozen=True)
class _Verdict:
    outcome: Outcome
    marks: tuple[Mark, ...] = ()
    cause: Cause | None = None
    message: str = ""
    blamed: ExceptionInfo | None = None


def _verdict(trial: TrialResult, excuse: str | None) -> _Verdict:
    """Harbor's grade and our marks. A failed trial becomes an error if something else than the agent was at fault."""
    exceptions = list(_exceptions(trial))
    marks = tuple(dict.fromkeys(mark for info, _ in exceptions if (mark := mark_of(info.exception_type))))
    blamed = next((info for info, _ in exceptions), None)
    rewards = _finite(trial.verifier_result)
    if not rewards:
        cause = cause_of(blamed.exception_type, blamed.exception_message, _phase(trial)) if blamed else Cause.VERIFIER
        return _Verdict(Outcome.ERROR, marks, cause, _message(blamed) or "The verifier gave no valid reward.", blamed)
    outcome = grade(rewards)
    if outcome is Outcome.FAILED:
        if excuse and Mark.AGENT_TIMEOUT in marks:
            return _Verdict(Outcome.ERROR, marks, Cause.LLM, f"The agent ran out of time, but {excuse}.", blamed)
        for info, in_step in exceptions:
            cause = cause_of(info.exception_type, info.exception_message, Phase.AGENT)
            if voids_failure(info.exception_type) or (in_step and cause is not Cause.AGENT):
                return _Verdict(Outcome.ERROR, marks, cause, _message(info), info)
    return _Verdict(outcome, marks, None, _message(blamed), blamed)


def _exceptions(trial: TrialResult) -> Iterable[tuple[ExceptionInfo, bool]]:
    """Each exception, and whether a step raised it. After an exception in a step Harbor still grades."""
    if trial.exception_info is not None:
        yield trial.exception_info, False
    for step in trial.step_results or []:
        if step.exception_info is not None:
            yield step.exception_info, True


def _phase(trial: TrialResult) -> Phase:
    """The phase in which an exception ended the trial."""
    for timing, phase in (
        (trial.verifier, Phase.VERIFY),
        (trial.agent_execution, Phase.AGENT),
        (trial.agent_setup, Phase.AGENT_SETUP),
    ):
        if timing is not None:
            return phase
    return Phase.AGENT if trial.step_results else Phase.START


def _finite(verified: object) -> dict[str, float]:
    """The rewards, if all of them are finite numbers. Otherwise the verifier gave no valid reward."""
    rewards = getattr(verified, "rewards", None)
    if not isinstance(rewards, dict) or not rewards:
        return {}
    values = {str(name): value for name, value in rewards.items()}
    if len(values) > _MOST_REWARDS or not all(_is_number(value) for value in values.values()):
        return {}
    return {_text(name, _LONGEST_NAME): float(value) for name, value in values.items()}


def _is_number(value: object) -> bool:
    """False for an integer that is too large for a float, which a verifier may write."""
    try:
        return isinstance(value, (int, float)) and math.isfinite(value)
    except OverflowError:
        return False


def _text(text: str | None, longest: int) -> str:
    """Text from a sandbox, cut and encoded so that a store can keep it."""
    return (text or "")[:longest].encode("utf-8", "replace").decode()


def _message(info: ExceptionInfo | None) -> str:
    if info is None:
        return ""
    first_line = _text(info.exception_message, _LONGEST_MESSAGE).strip().splitlines()[:1]
    kind = _text(info.exception_type, _LONGEST_NAME)
    return f"{kind}: {first_line[0]}" if first_line else kind


def _failure(info: ExceptionInfo | None) -> Failure | None:
    if info is None:
        return None
    return Failure(
        type=_text(info.exception_type, _LONGEST_NAME),
        message=_text(info.exception_message, _LONGEST_TRACEBACK),
        traceback=_text(info.exception_traceback[-_LONGEST_TRACEBACK:], _LONGEST_TRACEBACK),
    )


def _tests(trial: TrialResult, directory: Path) -> tuple[TestResult, ...]:
    if not trial.step_results:
        return tests_in(directory / "verifier")
    found: list[TestResult] = []
    for step in trial.step_results:
        for test in tests_in(directory / "steps" / step.step_name / "verifier"):
            found.append(test.model_copy(update={"name": f"{step.step_name}: {test.name}"}))  # noqa: PERF401
    return tuple(found[:_MOST_TESTS])


def _mend_recordings(directory: Path) -> None:
    """Removes the incomplete last line that a kill leaves in a terminal recording."""
    for pattern in ("agent/*.cast", "steps/*/agent/*.cast"):
        for recording in directory.glob(pattern):
            with suppress(OSError):  # the recording is then saved as it is
                if recording.is_file() and not recording.is_symlink():
                    repair_recording(recording)


def _timings(trial: TrialResult) -> Iterable[PhaseTiming]:
    yield from _timing(Phase.START, trial.environment_setup)
    yield from _timing(Phase.AGENT_SETUP, trial.agent_setup)
    yield from _timing(Phase.AGENT, trial.agent_execution)
    yield from _timing(Phase.VERIFY, trial.verifier)
    for step in trial.step_results or []:
        yield from _timing(Phase.AGENT, step.agent_execution, step.step_name)
        yield from _timing(Phase.VERIFY, step.verifier, step.step_name)


def _timing(phase: Phase, timing: TimingInfo | None, step: str | None = None) -> Iterable[PhaseTiming]:
    seconds = seconds_of(timing)
    if timing is not None and seconds is not None:
        yield PhaseTiming(phase=phase, started_at=timing.started_at, seconds=seconds, step=step)


def seconds_of(timed: TimingInfo | TrialResult | None) -> float | None:
    """``None`` if it has not begun or not ended."""
    if timed is None or timed.started_at is None or timed.finished_at is None:
        return None
    return float((timed.finished_at - timed.started_at).total_seconds())


def usage_of(trial: TrialResult | None) -> Usage:
    """What the agent reported about its model calls. Invalid numbers are left out."""
    if trial is None:
        return Usage()
    try:
        given, cached, produced, cost = trial.compute_token_cost_totals()
    except (ArithmeticError, TypeError, ValueError):
        given = cached = produced = cost = None
    contexts = [trial.agent_result, *(step.agent_result for step in trial.step_results or [])]
    metadata = [context.metadata or {} for context in contexts if context is not None]
    turns = [entry["n_episodes"] for entry in metadata if isinstance(entry.get("n_episodes"), int)]
    times = [entry.get("api_request_times_msec") for entry in metadata]
    calls = [len(entry) for entry in times if isinstance(entry, list)]
    return Usage(
        input_tokens=_count(given),
        cached_tokens=_count(cached),
        output_tokens=_count(produced),
        cost_usd=float(cost) if cost is not None and _is_number(cost) else None,
        turns=_count(sum(turns)) if turns else None,
        model_calls=sum(calls) if calls else None,
    )


def metered(reported: Usage, counted: Usage) -> Usage:
    """What the gate counted, in place of what the agent reported. Only the agent knows its turns.

    A cost that the gate does not know stays unknown: an agent in a sandbox can claim any."""
    if not counted.model_calls:
        return reported
    tokens = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "model_calls", "retries")
    counts = {name: _count(getattr(counted, name)) for name in tokens}
    return counted.model_copy(update={**counts, "turns": reported.turns})


def _count(number: object) -> int | None:
    """Integers of a database end at 2**63."""
    return number if isinstance(number, int) and 0 <= number < 2**63 else None


def has_grade(trial: TrialResult) -> bool:
    return bool(_finite(trial.verifier_result))
