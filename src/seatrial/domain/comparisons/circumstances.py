"""In what two or more sides of a comparison differ besides their score: configuration, versions, infrastructure, load
and trouble. Used by the API, the page and ``seatrial compare``.

Pure. Everything is given as text, because it comes from untrusted agents and from several versions of locks.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from seatrial.domain.comparisons.noise import Shares
from seatrial.domain.frozen import Frozen
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.reports.fact import Counts
from seatrial.domain.result import Lock

_LONGEST = 300
_SUFFERED = (
    "time throttled by the processor limit",
    "trials that reached their memory limit",
    "time waiting for the model",
    "time waiting for a turn at the provider",
)
"""In the order of ``Shares``."""


class TraitKind(StrEnum):
    CONFIGURATION = "configuration"
    VERSIONS = "versions"
    INFRASTRUCTURE = "infrastructure"
    LOAD = "load"
    TROUBLE = "trouble"


class Trait(Frozen):
    """One property of all sides."""

    kind: TraitKind
    name: str
    values: tuple[str, ...]
    """One for each side, in their order. Empty: not known, or the side has no such property."""
    differs: bool


class Circumstances(Frozen):
    """What is known about how one side ran."""

    spec: JobSpec
    agent: AgentSpec
    counts: Counts
    locks: tuple[Lock, ...] = ()
    """Of a sample of its trials."""
    workers: dict[str, int] = {}
    """Trials of that sample by worker."""
    retried: int = 0
    """Tries beyond the first of each trial."""
    at_once: float | None = None
    """How many trials of the job ran at the same time, on average."""
    suffered: Shares = Shares(None, None, None, None)


def traits(sides: Sequence[Circumstances]) -> tuple[Trait, ...]:
    """All of them, equal ones too."""
    rows = (
        *_lines(TraitKind.CONFIGURATION, [_configuration(side) for side in sides]),
        *_lines(TraitKind.VERSIONS, [_of_locks(side, _versions) for side in sides]),
        *_lines(TraitKind.INFRASTRUCTURE, [_of_locks(side, _infrastructure) for side in sides]),
        *_protections(sides),
        *_images(sides),
        *_lines(TraitKind.LOAD, [_load(side) for side in sides]),
        *_lines(TraitKind.TROUBLE, [_trouble(side) for side in sides], absent="0"),
    )
    return tuple(rows)


def _lines(kind: TraitKind, found: Sequence[Mapping[str, str]], absent: str = "") -> Iterable[Trait]:
    names = dict.fromkeys(name for side in found for name in side)
    for name in names:
        yield _trait(kind, name, (side.get(name, absent) for side in found))


def _trait(kind: TraitKind, name: str, values: Iterable[str]) -> Trait:
    found = tuple(values)
    return Trait(kind=kind, name=name, values=tuple(value[:_LONGEST] for value in found), differs=len(set(found)) > 1)


def _configuration(side: Circumstances) -> dict[str, str]:
    spec, agent = side.spec, side.agent
    return {
        "agent": agent.name,
        "model": agent.model or "none",
        **{f"option {name}": _text(value) for name, value in sorted(agent.options.items())},
        **{f"environment {name}": value for name, value in sorted(agent.env.items())},
        "dataset": spec.dataset or "none",
        "attempts": str(spec.attempts),
        "answers of the model": f"replayed from trial {spec.replay.trial}" if spec.replay else "new",
        "sandbox asked for": spec.sandbox,
        "time limits ×": f"{spec.timeout_multiplier:g}",
        "limit of a trial": f"{spec.trial_limit_sec:g} s" if spec.trial_limit_sec else "the task's own",
        "instruction": spec.instruction or "the task's own",
        "at once at most": str(spec.concurrency or "no limit"),
        "tries at most": str(spec.retry.max_attempts),
    }


def _of_locks(side: Circumstances, part: Callable[[Lock], dict[str, str]]) -> dict[str, str]:
    """Each property with its values over all locks, the most frequent first."""
    found: dict[str, Counter[str]] = {}
    for lock in side.locks:
        for name, value in part(lock).items():
            found.setdefault(name, Counter())[value] += 1
    return {name: _values(values) for name, values in found.items()}


def _values(values: Counter[str]) -> str:
    if len(values) == 1:
        return next(iter(values))
    return ", ".join(f"{value or 'none'} ({times})" for value, times in sorted(values.items(), key=_most_first))


def _most_first(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _versions(lock: Lock) -> dict[str, str]:
    return {"agent version": lock.agent_version, "Seatrial": lock.seatrial, "Harbor": lock.harbor}


def _infrastructure(lock: Lock) -> dict[str, str]:
    return {
        "sandbox": lock.sandbox,
        "network": lock.network,
        **{f"limit {name}": _text(value) for name, value in sorted(lock.limits.items())},
        **{f"host {name}": value for name, value in sorted(lock.host.items())},
        "not applied": "; ".join(sorted(lock.not_applied)),
    }


def _protections(sides: Sequence[Circumstances]) -> Iterable[Trait]:
    """Only those that not every lock has: a lock has dozens."""
    locks = [lock for side in sides for lock in side.locks]
    if not locks:
        return
    shared = set.intersection(*(set(lock.protections) for lock in locks))
    yield _trait(TraitKind.INFRASTRUCTURE, "further protections", (_held_by(side.locks, shared) for side in sides))


def _held_by(locks: Sequence[Lock], shared: set[str]) -> str:
    times = Counter(one for lock in locks for one in set(lock.protections) - shared)
    return "; ".join(
        name if often == len(locks) else f"{name} ({often} of {len(locks)})" for name, often in sorted(times.items())
    )


def _images(sides: Sequence[Circumstances]) -> Iterable[Trait]:
    """Whether a task ran in the same image as on the first side."""
    digests = [_by_task(side.locks) for side in sides]
    if not any(digests):
        return
    first = digests[0]
    values = []
    for mine in digests:
        common = sorted(first.keys() & mine.keys())
        other = sum(first[task] != mine[task] for task in common)
        values.append(f"another in {other} of {len(common)} tasks" if other else "the same")
    yield _trait(TraitKind.INFRASTRUCTURE, "image", values)


def _by_task(locks: Iterable[Lock]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for lock in locks:
        if lock.image_digest:
            found.setdefault(lock.task_digest, set()).add(lock.image_digest)
    return {task: frozenset(digests) for task, digests in found.items()}


def _load(side: Circumstances) -> dict[str, str]:
    return {
        "workers": _values(Counter(side.workers)) if side.workers else "",
        "running at once, on average": f"{side.at_once:.1f}" if side.at_once is not None else "",
        **{words: f"{share:.0%}" for words, share in zip(_SUFFERED, side.suffered, strict=True) if share is not None},
    }


def _trouble(side: Circumstances) -> dict[str, str]:
    counts = side.counts
    return {
        "valid trials": "all" if counts.valid == counts.planned else f"{counts.valid:,} of {counts.planned:,}",
        **{f"errors: {cause}": f"{times:,}" for cause, times in sorted(counts.errors.items())},
        "cancelled": f"{counts.cancelled:,}",
        "further tries": f"{side.retried:,}",
        **{f"marks: {mark}": f"{times:,}" for mark, times in sorted(counts.marks.items())},
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
