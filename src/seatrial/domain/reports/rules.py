"""Rules that make a job's score comparable with a public leaderboard. Checked before a run and in reports.

Rule sets are versioned: when the leaderboard changes its rules, a new set is added, and old reports keep theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seatrial.domain.frozen import Frozen
from seatrial.domain.job import JobSpec
from seatrial.domain.reports.fact import Counts
from seatrial.domain.trial import Mark


class RuleSet(Frozen):
    name: str
    version: str
    timeout_multiplier: float
    trials_per_task: int
    timeout_options: frozenset[str]
    """Agent options that would change a task's time limits."""
    resource_options: frozenset[str]
    """Agent options that would change a task's CPUs, memory, storage or GPUs."""


class BrokenRule(Frozen):
    rule: str
    found: str
    """What the job did instead."""


class PlanChanges(Frozen):
    """How a job's trials differ from its plan."""

    added: int = 0
    removed: int = 0
    not_needed: int = 0
    """Trials that a job which stops when settled did not need."""
    replays: int | None = None
    """The trial whose model calls the job repeats."""

    @classmethod
    def of(cls, spec: JobSpec | None, *, planned: int, added: int) -> PlanChanges:
        """``planned``: the planned trials that exist."""
        expected = len(spec.tasks) * len(spec.agents) * spec.attempts if spec else planned
        missing = max(0, expected - planned)
        replays = spec.replay.trial if spec is not None and spec.replay is not None else None
        if spec is not None and spec.until_settled is not None:
            return cls(added=added, not_needed=missing, replays=replays)
        return cls(added=added, removed=missing, replays=replays)

    @property
    def sentences(self) -> tuple[str, ...]:
        found = []
        if self.added:
            found.append(f"{_attempts(self.added)} added after the plan, outside of every score.")
        if self.removed:
            found.append(f"{_attempts(self.removed)} planned and removed later.")
        if self.not_needed:
            found.append(
                f"Stopped early: {self.not_needed:,} planned trials were not needed and did not run. Scores and "
                "coverage are over the trials that ran; a job that stops at a clear difference overstates it a little."
            )
        if self.replays is not None:
            found.append(f"{replay_sentence(self.replays)}.")
        return tuple(found)


class RuleCheck(Frozen):
    """Whether a job meets the rules."""

    rules: str
    version: str
    broken: tuple[BrokenRule, ...]
    notes: tuple[str, ...] = ()
    """What a reader of the check should know although it breaks no rule."""

    @property
    def kept(self) -> bool:
        return not self.broken


TERMINAL_BENCH = RuleSet(
    name="terminal-bench-leaderboard",
    version="2.0",
    timeout_multiplier=1.0,
    trials_per_task=5,
    timeout_options=frozenset(
        {
            "override_timeout_sec",
            "override_setup_timeout_sec",
            "max_timeout_sec",
            "agent_timeout_multiplier",
            "verifier_timeout_multiplier",
            "agent_setup_timeout_multiplier",
            "environment_build_timeout_multiplier",
        }
    ),
    resource_options=frozenset(
        {"override_cpus", "override_memory_mb", "override_storage_mb", "override_gpus", "override_tpu"}
    ),
)


def planned_share(spec: JobSpec | None, there: int) -> int:
    """The planned trials of one configuration. ``there``: how many of them exist. Trials that a job did not need
    because it was settled are not part of its plan any more."""
    if spec is None or spec.until_settled is not None:
        return there
    return len(spec.tasks) * spec.attempts


def check_rules(
    spec: JobSpec,
    counts: Iterable[Mapping[str, Counts]] | None = None,
    changed: PlanChanges | None = None,
    rules: RuleSet = TERMINAL_BENCH,
) -> RuleCheck:
    """``counts``: by task, per configuration. Without them only the plan is checked, as before a run."""
    changed = changed or PlanChanges()
    by_task = [dict(tasks) for tasks in counts] if counts is not None else []
    broken = (
        _timeout_multiplier(spec, rules),
        _timeout_overrides(spec, rules),
        _resource_overrides(spec, rules, by_task),
        _enough_trials(spec, rules, by_task),
        _all_there(changed),
        _asked_anew(spec),
    )
    return RuleCheck(
        rules=rules.name,
        version=rules.version,
        broken=tuple(rule for rule in broken if rule),
        notes=changed.sentences,
    )


def replay_sentence(trial: int, who: str = "The job") -> str:
    return f"{who} replays the model's answers of trial {trial}: it tests the task and the sandbox, not the model"


def _asked_anew(spec: JobSpec) -> BrokenRule | None:
    if spec.replay is None:
        return None
    return BrokenRule(rule="every trial asks its model", found=f"the answers are those of trial {spec.replay.trial}")


def _timeout_multiplier(spec: JobSpec, rules: RuleSet) -> BrokenRule | None:
    if spec.timeout_multiplier == rules.timeout_multiplier:
        return None
    return BrokenRule(
        rule=f"timeout multiplier {rules.timeout_multiplier}", found=f"the job used {spec.timeout_multiplier:g}"
    )


def _timeout_overrides(spec: JobSpec, rules: RuleSet) -> BrokenRule | None:
    found = _options(spec, rules.timeout_options)
    if spec.trial_limit_sec is not None:
        found.append(f"trial_limit_sec={spec.trial_limit_sec:g}")
    return BrokenRule(rule="no timeout overrides", found=", ".join(found)) if found else None


def _resource_overrides(spec: JobSpec, rules: RuleSet, by_task: list[dict[str, Counts]]) -> BrokenRule | None:
    found = _options(spec, rules.resource_options)
    unlimited = sum(counts.marks.get(Mark.LIMITS_NOT_ENFORCED, 0) for tasks in by_task for counts in tasks.values())
    if unlimited:
        found.append(f"{unlimited} trials ran without the task's limits")
    return BrokenRule(rule="no resource overrides", found=", ".join(found)) if found else None


def _enough_trials(spec: JobSpec, rules: RuleSet, by_task: list[dict[str, Counts]]) -> BrokenRule | None:
    rule = f"at least {rules.trials_per_task} trials of every task"
    if not by_task:
        few = spec.attempts < rules.trials_per_task
        if spec.until_settled is not None and not few:
            return BrokenRule(rule=rule, found="the job stops when settled, perhaps before that")
        return BrokenRule(rule=rule, found=f"{spec.attempts} planned") if few else None
    # Running trials count as planned; cancelled ones do not count.
    short = {
        task: trials
        for tasks in by_task
        for task, counts in tasks.items()
        if (trials := counts.planned - counts.cancelled) < rules.trials_per_task
    }
    most = len({task.digest for task in spec.tasks})
    if spec.until_settled is not None and any(len(tasks) < most for tasks in by_task):
        return BrokenRule(rule=rule, found="the job stopped before every task was run")
    if not short:
        return None
    return BrokenRule(
        rule=rule, found=f"{len(short)} tasks have fewer, {min(short, key=short.__getitem__)!r} among them"
    )


def _all_there(changed: PlanChanges) -> BrokenRule | None:
    if not changed.removed:
        return None
    return BrokenRule(rule="every planned trial", found=f"{changed.removed} were removed")


def _attempts(number: int) -> str:
    return "1 attempt was" if number == 1 else f"{number:,} attempts were"


def _options(spec: JobSpec, names: frozenset[str]) -> list[str]:
    return sorted(
        {
            f"{name}={value}"
            for agent in spec.agents
            for name, value in agent.options.items()
            if name in names and value is not None
        }
    )
