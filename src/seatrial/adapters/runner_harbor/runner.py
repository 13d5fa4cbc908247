"""Runs one try with Harbor's ``Trial`` in this process: configure, equip, run, read the result.

``engine.trials.execute`` calls it through the runner port. It knows Harbor and the sandboxes, but not the stores.
"""

from __future__ import annotations

import asyncio
import json
import platform
import traceback
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from importlib.metadata import version

from harbor.agents.installed.base import BaseInstalledAgent
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.result import TrialResult
from harbor.trial.trial import Trial

from seatrial import __version__
from seatrial.adapters.causes import cause_of
from seatrial.adapters.runner_harbor.config import OUR_SANDBOXES, trial_config
from seatrial.adapters.runner_harbor.equip import ModelAccess
from seatrial.adapters.runner_harbor.equipment import Equipment
from seatrial.adapters.runner_harbor.final_state import FinalState, KeptRun
from seatrial.adapters.runner_harbor.library_trial import GradedTrial
from seatrial.adapters.runner_harbor.outcome import (
    has_grade,
    metered,
    read_result,
    seconds_of,
    usage_of,
    without_host_paths,
)
from seatrial.adapters.runner_harbor.watch import Watch
from seatrial.agents.kits.fitting import AgentKits, FittedKit
from seatrial.agents.kits.layers import AgentLayers, Layered
from seatrial.agents.limits import TrialLimits, tell_limits
from seatrial.domain.catalogue import takes_model
from seatrial.domain.result import Failure, Lock, Result, Usage, grade
from seatrial.domain.suffered import Suffered
from seatrial.domain.trial import Cause, Mark, Outcome, Phase
from seatrial.engine.model_patience import ModelHealth
from seatrial.errors import SetupProblem, TrialFault, Unsupported
from seatrial.gateway.counts import CallCounts
from seatrial.gateway.journal import read_calls
from seatrial.ports.runner import Order, Progress
from seatrial.sandboxes.compose import read_compose
from seatrial.sandboxes.facts import SandboxFacts
from seatrial.sandboxes.host.tree_copy import TransferLimits
from seatrial.sandboxes.options import Owner, SandboxOptions
from seatrial.sandboxes.sandbox import Sandbox
from seatrial.sandboxes.selection import SandboxSelection

_LONGEST_MESSAGE = 500
_NOTICEABLE_SEC = 1.0
_MODEL_CLIENT = "harbor.llms.lite_llm"
"""Imported in a thread, and only for agents with a model. The import takes seconds and would delay the heartbeat."""
_MAKES_AGENT = "_init_agent"
"""Harbor's method that creates the agent. Harbor creates agent and sandbox in one call; a frame of this method in the
traceback tells which of the two failed."""
_SUSPICIONS = (Mark.SUSPECT_PATH, Mark.SUSPECT_PYTHON, Mark.SUSPECT_SHELL)


class HarborRunner:
    """Implements ``ports.runner.Runner``. One instance serves all trials of a worker."""

    def __init__(
        self,
        options: SandboxOptions,
        install: str,
        sandboxes: SandboxSelection,
        models: ModelAccess,
        create: Callable[[TrialConfig], Awaitable[Trial]] = Trial.create,
        kits: AgentKits | None = None,
        layers: AgentLayers | None = None,
    ) -> None:
        self._options = options
        self._install = install
        self._sandboxes = sandboxes
        self._models = models
        self._create_trial = create
        self._kits = kits
        self._layers = layers
        self._harbor = version("harbor")
        self._limits = TransferLimits(
            files=options.max_kept_files, bytes=options.max_kept_mb << 20, depth=options.max_kept_depth
        )

    async def close(self) -> None:
        """Closes the gate and its connections, after the last trial."""
        await self._models.close()

    async def run(self, order: Order, progress: Progress) -> Result:
        watch = Watch(progress)
        trial: Trial | None = None
        equipment: Equipment | None = None
        health: ModelHealth | None = None
        kept: KeptRun | None = None
        kit: FittedKit | Layered | str = ""
        sandbox = order.job.sandbox
        try:
            async with AsyncExitStack() as doors:
                sandbox = await self._sandboxes.choose(order.job.sandbox, order.task)
                kept = await KeptRun.read(order, sandbox)
                if kept is not None:
                    await kept.bring_files(order, self._limits)
                kit = await self._fit(order, sandbox, doors) if kept is None else ""
                equipment = await self._models.equip(order, doors, sandbox)
                if order.agent.model:
                    await asyncio.to_thread(import_module, _MODEL_CLIENT)
                trial = await self._create(order, sandbox, equipment)
                doors.enter_context(watch.attached(trial))
                health = equipment.hand_to(trial.agent)
                if isinstance(kit, FittedKit):
                    kit.hand_to(trial.agent)
                elif kept is None:
                    kit = self._layered(order, trial, equipment, kit) or kit
                if takes_model(order.agent.name):
                    tell_limits(trial.agent, _limits(order, trial, equipment))
                self._prepare_grading(order, sandbox, trial, kept, lambda: _excuse(health, trial))
                await trial.run()
        except asyncio.CancelledError:
            progress.spent(_usage(equipment, _result_so_far(trial)))
            raise
        except Exception as error:
            # Harbor catches what happens inside ``run``. So the trial did not start, or Harbor failed while it wrote
            # the result; in that case an existing grade counts.
            so_far = _result_so_far(trial)
            if so_far is None or not has_grade(so_far):
                result = without_host_paths(_ended_by(error, _cause(error, equipment)), order.work_dir)
                facts = facts_of(trial)
                lock = self._lock(order, sandbox, trial, facts, equipment, kit)
                suffered = suffered_of(result.suffered, facts, health)
                usage = _usage(equipment, so_far)
                result = with_replay(result, equipment)
                return result.model_copy(update={"lock": lock, "usage": usage, "suffered": suffered})
        assert trial is not None
        if kept is not None:  # its calls were made in an earlier try
            counted = await asyncio.to_thread(lambda: CallCounts.of(read_calls(order.work_dir)).usage)
            usage = metered(usage_of(trial.result), counted)
        else:
            usage = _usage(equipment, trial.result)
        progress.spent(usage)
        excuse = kept.run.excuse if kept is not None else _excuse(health, trial)
        result = await read_result(trial.result, order.work_dir, excuse)
        facts = facts_of(trial)
        result = with_waits(result, health)
        lock = self._lock(order, sandbox, trial, facts, equipment, kit)
        marks = with_facts(result.marks, facts)
        if equipment is not None and equipment.has_key_inside:
            marks = (*marks, Mark.KEY_IN_SANDBOX)
        if equipment is not None and equipment.calls is not None:
            result = unless_given_up(result, equipment.calls.health)
        if equipment is not None and equipment.is_over_budget:
            result, marks = graded_over_budget(result), tuple(dict.fromkeys((*marks, Mark.OVER_BUDGET)))
        if kept is not None:
            lock = lock.model_copy(update={"not_applied": (*lock.not_applied, kept.note)})
            marks = tuple(dict.fromkeys((*marks, *kept.run.marks)))
        result = with_replay(result.model_copy(update={"marks": marks}), equipment, is_kept=kept is not None)
        return result.model_copy(
            update={
                "usage": usage,
                "suffered": suffered_of(result.suffered, facts, health),
                "timings": watch.refine(result.timings),
                "files_left_out": watch.left_out,
                "lock": lock,
            }
        )

    def _prepare_grading(
        self, order: Order, sandbox: str, trial: Trial, kept: KeptRun | None, excuse: Callable[[], str | None]
    ) -> None:
        """Grades an earlier try's agent, or lets this one's be kept until it is graded."""
        if not isinstance(trial, GradedTrial):
            return
        state = FinalState(order, sandbox, self._limits, excuse)
        if kept is not None:
            kept.hand_to(trial)
        elif state.wanted:
            trial.on_agent_end = state.keep

    async def _create(self, order: Order, sandbox: str, equipment: Equipment) -> Trial:
        if sandbox == "harbor:docker":  # stock Harbor passes the file to compose unchanged
            privileged = self._options.allow_privileged
            read_compose(order.task_dir / "environment", allow_privileged=privileged, for_compose=True)
        owner = Owner(install=self._install, trial=order.trial.id, try_number=order.trial.try_number)
        trial = await self._create_trial(trial_config(order, sandbox, equipment.agent, owner, self._options))
        if order.job.instruction is not None:
            trial.task.instruction = order.job.instruction
        return trial

    async def _fit(self, order: Order, sandbox: str, doors: AsyncExitStack) -> FittedKit | str:
        """The kit of the order's agent, or why it has none."""
        if self._kits is None or sandbox not in OUR_SANDBOXES:
            return ""
        version = order.agent.options.get("version")
        wanted = version if isinstance(version, str) else None
        return await doors.enter_async_context(self._kits.fit(order.agent.name, wanted, order.trial.job_id))

    def _layered(self, order: Order, trial: Trial, equipment: Equipment, why: str) -> Layered | None:
        """An installed agent without a kit starts from a layer, unless a key goes into its sandbox."""
        sandbox, agent = trial.agent_environment, trial.agent
        keyless = equipment.open_door is not None or order.agent.model is None
        if self._layers is None or not keyless or not isinstance(sandbox, Sandbox):
            return None
        if not isinstance(agent, BaseInstalledAgent):
            return None
        servers = [server.model_dump(mode="json") for server in trial.task.config.environment.mcp_servers]
        facts = {"options": order.agent.options, "env": order.agent.env, "servers": servers, "harbor": self._harbor}
        layered = Layered(
            self._layers,
            agent,
            sandbox,
            json.dumps(facts, sort_keys=True, default=str),
            order.agent.name,
            user=trial.task.config.agent.user,
            limit_sec=trial.agent_setup_timeout_sec,
        )
        layered.notes.extend([why] if why else [])
        sandbox.dress = layered.dress
        return layered

    def _lock(
        self,
        order: Order,
        sandbox: str,
        trial: Trial | None,
        facts: SandboxFacts,
        equipment: Equipment | None,
        kit: FittedKit | Layered | str,
    ) -> Lock:
        digest, notes = _kit_facts(kit)
        return Lock(
            seatrial=__version__,
            harbor=self._harbor,
            task_digest=order.task.digest,
            sandbox=sandbox,
            image=facts.image,
            image_digest=facts.image_digest,
            image_source=facts.image_source,
            agent=order.agent.name,
            agent_version=_agent_version(trial),
            agent_kit=digest,
            model=order.agent.model,
            options=order.agent.options,
            timeout_multiplier=order.job.timeout_multiplier,
            limits=facts.limits,
            network=facts.network,
            protections=facts.protections,
            not_applied=(
                *facts.not_applied,
                *(equipment.notes if equipment is not None else ()),
                *notes,
            ),
            replays=order.job.replay.trial if order.job.replay is not None else None,
            host={"kernel": platform.release(), "machine": platform.machine(), "python": platform.python_version()},
        )


def _kit_facts(kit: FittedKit | Layered | str) -> tuple[str | None, Sequence[str]]:
    """The digest of the kit or layer that the agent ran from, and notes for the lock."""
    if isinstance(kit, str):
        return None, [kit] if kit else []
    if isinstance(kit, FittedKit):
        return kit.kit.digest if kit.is_used else None, kit.notes
    return kit.layer.digest if kit.layer is not None else None, kit.notes


def _limits(order: Order, trial: Trial, equipment: Equipment) -> TrialLimits:
    """What the agent may know. Agents that run the task's solution or do nothing need not."""
    return TrialLimits(
        budget_left=equipment.purse.left if equipment.purse is not None else None,
        ends_at=order.ends_at,
        agent_limit_sec=trial.agent_timeout_sec,
        in_instruction=order.job.tell_limits,
    )


def _usage(equipment: Equipment | None, found: TrialResult | None) -> Usage:
    """What the gate counted; what the agent reported, if no call passed the gate."""
    calls = equipment.calls if equipment is not None else None
    return usage_of(found) if calls is None else metered(usage_of(found), calls.usage)


def _excuse(health: ModelHealth | None, trial: Trial | None) -> str | None:
    if health is None or trial is None:
        return None
    return health.spoils_timeout(seconds_of(trial.result.agent_execution) or 0.0)


def _cause(error: Exception, equipment: Equipment | None) -> Cause:
    if isinstance(error, TrialFault):
        return Cause(error.cause)
    if equipment is None:
        unfit = not isinstance(error, Unsupported | SetupProblem)  # the agent does not accept its options
    else:
        unfit = any(frame.name == _MAKES_AGENT for frame in traceback.extract_tb(error.__traceback__))
    return Cause.AGENT if unfit else cause_of(type(error).__name__, str(error), Phase.START)


def _ended_by(error: Exception, cause: Cause) -> Result:
    kind, message = type(error).__name__, str(error)
    failure = Failure(type=kind, message=message)
    return Result(
        outcome=Outcome.ERROR,
        cause=cause,
        message=" ".join(message.split())[:_LONGEST_MESSAGE] or kind,
        failure=failure,
    )


def _result_so_far(trial: Trial | None) -> TrialResult | None:
    """Harbor's result so far; ``None`` if the trial never began."""
    return trial._result if trial is not None else None


def facts_of(trial: Trial | None) -> SandboxFacts:
    environment = getattr(trial, "agent_environment", None)
    return environment.facts if isinstance(environment, Sandbox) else SandboxFacts()


def _agent_version(trial: Trial | None) -> str:
    return str((trial.agent.version() if trial is not None else "") or "")


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
