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
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version

from harbor.agents.installed.base import BaseInstalledAgent
from harbor.models.trial.config import TrialConfig
from harbor.models.trial.result import TrialResult
from harbor.trial.trial import Trial

from seatrial import __version__
from seatrial.adapters.causes import cause_of
from seatrial.adapters.runner_harbor.additions import (
    facts_of,
    graded_over_budget,
    suffered_of,
    unless_given_up,
    with_facts,
    with_replay,
    with_waits,
)
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
from seatrial.domain.agents.catalogue import takes_model
from seatrial.domain.result import Failure, Lock, Result, Usage
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
_MODEL_CLIENT = "harbor.llms.lite_llm"
"""Imported in a thread, and only for agents with a model. The import takes seconds and would delay the heartbeat."""
_MAKES_AGENT = "_init_agent"
"""Harbor's method that creates the agent. Harbor creates agent and sandbox in one call; a frame of this method in the
traceback tells which of the two failed."""


@dataclass
class _Run:
    """One run of a trial. It is filled step by step, so that the result tells what there was, whatever ended it."""

    order: Order
    watch: Watch
    sandbox: str
    trial: Trial | None = None
    equipment: Equipment | None = None
    health: ModelHealth | None = None
    kept: KeptRun | None = None
    """The agent ran in an earlier try, and is only graded in this one."""
    kit: FittedKit | Layered | str = ""
    """What the agent ran from, or why it has no kit."""

    @property
    def found(self) -> TrialResult | None:
        """Harbor's result so far; ``None`` if the trial never began."""
        return self.trial._result if self.trial is not None else None

    @property
    def usage(self) -> Usage:
        """What the gate counted; what the agent reported, if no call passed the gate."""
        calls = self.equipment.calls if self.equipment is not None else None
        return usage_of(self.found) if calls is None else metered(usage_of(self.found), calls.usage)

    async def final_usage(self) -> Usage:
        """That of the agent, which made its calls in an earlier try if it is only graded now."""
        if self.kept is None:
            return self.usage
        counted = await asyncio.to_thread(lambda: CallCounts.of(read_calls(self.order.work_dir)).usage)
        return metered(usage_of(self.found), counted)


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
        run = _Run(order, Watch(progress), order.job.sandbox)
        try:
            await self._carry_out(run)
        except asyncio.CancelledError:
            progress.spent(run.usage)
            raise
        except Exception as error:
            # Harbor catches what happens inside ``run``. So the trial did not start, or Harbor failed while it wrote
            # the result; in that case an existing grade counts.
            if run.found is None or not has_grade(run.found):
                return self._ended_by(run, error)
        assert run.trial is not None
        usage = await run.final_usage()
        progress.spent(usage)
        return await self._graded(run, run.trial, usage)

    async def _carry_out(self, run: _Run) -> None:
        order = run.order
        async with AsyncExitStack() as doors:
            run.sandbox = sandbox = await self._sandboxes.choose(order.job.sandbox, order.task)
            run.kept = kept = await KeptRun.read(order, sandbox)
            if kept is not None:
                await kept.bring_files(order, self._limits)
            run.kit = kit = await self._fit(order, sandbox, doors) if kept is None else ""
            run.equipment = equipment = await self._models.equip(order, doors, sandbox)
            if order.agent.model:
                await asyncio.to_thread(import_module, _MODEL_CLIENT)
            run.trial = trial = await self._create(order, sandbox, equipment)
            doors.enter_context(run.watch.attached(trial))
            run.health = health = equipment.hand_to(trial.agent)
            if isinstance(kit, FittedKit):
                kit.hand_to(trial.agent)
            elif kept is None:
                run.kit = self._layered(order, trial, equipment, kit) or kit
            if takes_model(order.agent.name):
                tell_limits(trial.agent, _limits(order, trial, equipment))
            self._prepare_grading(order, sandbox, trial, kept, lambda: _excuse(health, trial))
            await trial.run()

    def _ended_by(self, run: _Run, error: Exception) -> Result:
        """The result of a trial that has no grade."""
        result = without_host_paths(_error_result(error, _cause(error, run.equipment)), run.order.work_dir)
        facts = facts_of(run.trial)
        known = {
            "lock": self._lock(run, facts),
            "usage": run.usage,
            "suffered": suffered_of(result.suffered, facts, run.health),
        }
        return with_replay(result, run.equipment).model_copy(update=known)

    async def _graded(self, run: _Run, trial: Trial, usage: Usage) -> Result:
        equipment, kept = run.equipment, run.kept
        excuse = kept.run.excuse if kept is not None else _excuse(run.health, trial)
        result = with_waits(await read_result(trial.result, run.order.work_dir, excuse), run.health)
        facts = facts_of(trial)
        lock, marks = self._lock(run, facts), with_facts(result.marks, facts)
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
                "suffered": suffered_of(result.suffered, facts, run.health),
                "timings": run.watch.refine(result.timings),
                "files_left_out": run.watch.left_out,
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
            trial.on_agent_end = state.save

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
        sandbox.add_layer = layered.add_layer
        return layered

    def _lock(self, run: _Run, facts: SandboxFacts) -> Lock:
        order, equipment = run.order, run.equipment
        digest, notes = _kit_facts(run.kit)
        return Lock(
            seatrial=__version__,
            harbor=self._harbor,
            task_digest=order.task.digest,
            sandbox=run.sandbox,
            image=facts.image,
            image_digest=facts.image_digest,
            image_source=facts.image_source,
            agent=order.agent.name,
            agent_version=_agent_version(run.trial),
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
        budget_left=equipment.call_budget.left if equipment.call_budget is not None else None,
        ends_at=order.ends_at,
        agent_limit_sec=trial.agent_timeout_sec,
        in_instruction=order.job.tell_limits,
    )


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


def _error_result(error: Exception, cause: Cause) -> Result:
    kind, message = type(error).__name__, str(error)
    failure = Failure(type=kind, message=message)
    return Result(
        outcome=Outcome.ERROR,
        cause=cause,
        message=" ".join(message.split())[:_LONGEST_MESSAGE] or kind,
        failure=failure,
    )


def _agent_version(trial: Trial | None) -> str:
    return str((trial.agent.version() if trial is not None else "") or "")
