"""Prints one trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.cli.view.progress import duration
from seatrial.cli.view.say import say
from seatrial.domain.model_calls.replay import Replayed
from seatrial.domain.result import FilesLeftOut, Result, Try, Usage
from seatrial.domain.trial import Mark, Trial
from seatrial.ports.store import TrialRow


def print_trial(row: TrialRow, tries: Sequence[Try]) -> None:
    for line in trial_lines(row, tries):
        say(line)


def trial_lines(row: TrialRow, tries: Sequence[Try]) -> Iterator[str]:
    trial, result = row.trial, row.result
    yield headline(trial, result)
    if result is not None:
        yield from _result(result)
    earlier = [a_try for a_try in tries if a_try.number != trial.try_number and a_try.result is not None]
    for a_try in earlier:
        assert a_try.result is not None
        cause = f" ({a_try.result.cause})" if a_try.result.cause else ""
        yield f"earlier try {a_try.number}: {a_try.result.outcome}{cause}  {a_try.result.message}"


def headline(trial: Trial, result: Result | None) -> str:
    state = trial.outcome or trial.phase or trial.state
    reward = f" (reward {result.reward:g})" if result is not None and result.reward is not None else ""
    who = f"{trial.agent} / {trial.model}" if trial.model else trial.agent
    return f"trial {trial.id}: {trial.task.name} · {who} · attempt {trial.attempt}: {state}{reward}"


def _result(result: Result) -> Iterator[str]:
    if result.cause:
        yield f"cause    {result.cause}"
    if result.marks:
        yield f"marks    {', '.join(_mark(mark, result) for mark in result.marks)}"
    if result.message:
        yield f"message  {result.message}"
    if len(result.rewards) > 1 or result.steps:
        yield f"rewards  {', '.join(f'{name} {value:g}' for name, value in result.rewards.items())}"
    for step, rewards in result.steps.items():
        yield f"  step {step}: {', '.join(f'{name} {value:g}' for name, value in rewards.items()) or 'not graded'}"
    yield f"time     {duration(result.seconds)}" + "".join(
        f"  {timing.phase}{f'[{timing.step}]' if timing.step else ''} {duration(timing.seconds)}"
        for timing in result.timings
    )
    if result.suffered.pace_wait_sec:
        yield f"waited   {duration(result.suffered.pace_wait_sec)} for turns at the model's provider"
    if result.usage.input_tokens is not None:
        cost = f", ${result.usage.cost_usd:.4f}" if result.usage.cost_usd is not None else ", cost not reported"
        yield f"tokens   {_tokens(result.usage)}{cost}"
    if result.usage.model_calls is not None:
        yield f"calls    {_calls(result.usage)}"
    if result.replay is not None:
        yield f"replay   {_replayed(result.replay)}"
    for test in result.tests:
        yield f"  {test.status:<8} {test.name}" + (f"  {test.message.splitlines()[0][:100]}" if test.message else "")
    if result.lock is not None:
        lock = result.lock
        yield f"sandbox  {lock.sandbox}, image {lock.image or '?'} ({lock.image_source or '?'}), network {lock.network}"
        if lock.agent_kit:
            yield f"agent    {lock.agent} {lock.agent_version}, kit {lock.agent_kit}"
        for entry in lock.not_applied:
            yield f"  not applied: {entry}"
    count, size = result.file_totals
    yield f"files    {count}, {size} bytes"
    yield from left_out_lines(result.files_left_out)


def _mark(mark: Mark, result: Result) -> str:
    waited = result.suffered.pace_wait_sec or result.usage.rate_limited_sec
    return f"{mark} ({duration(waited)})" if mark is Mark.THROTTLED and waited else mark


def _tokens(usage: Usage) -> str:
    cached = f" ({usage.cached_tokens} cached)" if usage.cached_tokens else ""
    reasoning = f" ({usage.reasoning_tokens} reasoning)" if usage.reasoning_tokens else ""
    return f"{usage.input_tokens} in{cached}, {usage.output_tokens} out{reasoning}"


def _calls(usage: Usage) -> str:
    parts = [str(usage.model_calls)]
    if usage.retries:
        parts.append(f"{usage.retries} sent again")
    if usage.first_token_sec is not None:
        parts.append(f"first token after {duration(usage.first_token_sec)} on average")
    return ", ".join(parts)


def left_out_lines(left_out: FilesLeftOut | None) -> Iterator[str]:
    """The files that were not stored, and why."""
    if left_out is None:
        return
    for file in left_out.examples:
        yield f"  not stored: {file.path}  {file.reason}"
    if left_out.count > len(left_out.examples):
        yield f"  not stored: {left_out.count} in total"


def _replayed(replay: Replayed) -> str:
    saved = f"; they would have cost ${replay.saved_usd:.4f}" if replay.saved_usd is not None else ""
    return f"of trial {replay.trial}: {replay.hits} calls answered{saved}; {replay.misses} not in its record"
