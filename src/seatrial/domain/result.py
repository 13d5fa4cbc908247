"""The result of a try: rewards, tests, timings, usage, and the lock to reproduce it."""

from __future__ import annotations

import math
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

from seatrial.domain.frozen import Frozen
from seatrial.domain.model_calls.replay import Replayed
from seatrial.domain.suffered import Suffered
from seatrial.domain.trial import Cause, Mark, Outcome, Phase


class TestStatus(StrEnum):
    __test__ = False  # not a pytest class

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"


class TestResult(Frozen):
    """One test of the verifier, from CTRF or parsed from its output."""

    __test__ = False  # not a pytest class

    name: str
    status: TestStatus
    seconds: float | None = None
    message: str = ""


class PhaseTiming(Frozen):
    phase: Phase
    started_at: datetime
    seconds: float
    step: str | None = None


class Usage(Frozen):
    """Model usage, as the gate counted it; for calls past the gate, as the agent reported it. ``None``: not known."""

    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    """Part of the output tokens."""
    cost_usd: float | None = None
    model_calls: int | None = None
    turns: int | None = None
    first_token_sec: float | None = None
    """Seconds from a request to the first piece of its answer, on average."""
    retries: int | None = None
    """Requests that were sent again after a rate limit or an outage."""
    rate_limited_sec: float | None = None
    """Seconds in which calls waited, because the provider limits the pace."""


class Spent(Frozen):
    """What all tries of a trial used together, those before the last one included. ``None``: no try reported it."""

    seconds: float = 0.0
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None

    def and_also(self, result: Result) -> Spent:
        usage = result.usage
        return Spent(
            seconds=self.seconds + result.seconds,
            input_tokens=_sum(self.input_tokens, usage.input_tokens),
            cached_tokens=_sum(self.cached_tokens, usage.cached_tokens),
            output_tokens=_sum(self.output_tokens, usage.output_tokens),
            cost_usd=_sum(self.cost_usd, usage.cost_usd),
        )


def _sum[Number: (int, float)](one: Number | None, other: Number | None) -> Number | None:
    if one is None or other is None:
        return one if other is None else other
    return one + other


class Failure(Frozen):
    """The exception behind an error or a mark."""

    type: str
    message: str
    traceback: str = ""


class StoredFile(Frozen):
    """One stored file of a try; its content is in the blob store."""

    path: str
    """Its name in the try. Characters that cannot be shown are escaped."""
    size: int
    media_type: str = "application/octet-stream"
    key: str = ""
    """Its name in the blobs, if that is a different one: not every name is a valid key."""


class FileListing(Frozen):
    """Lists all saved files, if there are too many for a result."""

    key: str
    """Its key in the blobs."""
    count: int
    bytes: int


class FileLeftOut(Frozen):
    """A file of a try that was not saved."""

    path: str
    reason: str


class FilesLeftOut(Frozen):
    """Files of a try that were not saved."""

    count: int
    examples: tuple[FileLeftOut, ...] = ()
    """The first of them."""

    def and_also(self, other: FilesLeftOut | None) -> FilesLeftOut:
        if other is None:
            return self
        return FilesLeftOut(count=self.count + other.count, examples=(*self.examples, *other.examples))


class Lock(Frozen):
    """Everything that determined how the try ran."""

    seatrial: str
    harbor: str
    task_digest: str
    sandbox: str
    image: str | None = None
    image_digest: str | None = None
    image_source: str | None = None
    """``local``, ``pulled``, ``built``, ``bootstrapped`` or ``forced build``."""
    agent: str = ""
    agent_version: str = ""
    agent_kit: str | None = None
    """Digest of the kit that the agent ran from; ``None`` if it was installed in another way."""
    model: str | None = None
    options: dict[str, Any] = {}
    timeout_multiplier: float = 1.0
    limits: dict[str, Any] = {}
    network: str = ""
    protections: tuple[str, ...] = ()
    """What was applied: capabilities, seccomp, cgroup limits, network, grading isolation, …"""
    not_applied: tuple[str, ...] = ()
    """What could not be applied, and why."""
    host: dict[str, str] = {}
    replays: int | None = None
    """The trial whose record answered the model calls."""


class Result(Frozen):
    """The result of one try."""

    outcome: Outcome
    rewards: dict[str, float] = {}
    cause: Cause | None = None
    marks: tuple[Mark, ...] = ()
    message: str = ""
    """One sentence for people."""
    failure: Failure | None = None
    tests: tuple[TestResult, ...] = ()
    steps: dict[str, dict[str, float]] = {}
    """Rewards by step of a multi-step task."""
    timings: tuple[PhaseTiming, ...] = ()
    usage: Usage = Usage()
    replay: Replayed | None = None
    """How the model calls were answered from the record of another trial. ``None``: they were not."""
    suffered: Suffered = Suffered()
    lock: Lock | None = None
    last_command: str = ""
    """What the agent did last, as its trajectory names it. Empty if it reported no steps."""
    files: tuple[StoredFile, ...] = ()
    """Saved files. If there are many, those nearest to the top."""
    file_listing: FileListing | None = None
    """Lists all files, if ``files`` does not contain all."""
    files_left_out: FilesLeftOut | None = None
    seconds: float = Field(default=0.0, ge=0)

    @property
    def reward(self) -> float | None:
        """The deciding value: ``reward`` if present, otherwise the smallest; ``None`` without rewards."""
        return deciding_reward(self.rewards)

    @property
    def file_totals(self) -> tuple[int, int]:
        """Number and bytes of the saved files."""
        if self.file_listing is not None:
            return self.file_listing.count, self.file_listing.bytes
        return len(self.files), sum(file.size for file in self.files)


def deciding_reward(rewards: dict[str, float]) -> float | None:
    if not rewards:
        return None
    return rewards["reward"] if "reward" in rewards else min(rewards.values())


def grade(rewards: dict[str, float]) -> Outcome:
    """*Passed* means that the deciding value is at least 1."""
    value = deciding_reward(rewards)
    if value is None or not all(math.isfinite(reward) for reward in rewards.values()):
        raise ValueError("grading needs at least one reward, and all must be finite")
    return Outcome.PASSED if value >= 1 else Outcome.FAILED


class Try(Frozen):
    """One claim of a trial, never deleted while the trial exists."""

    trial_id: int
    number: int
    worker: str | None
    started_at: datetime
    ended_at: datetime | None = None
    result: Result | None = None
