"""Keeps what an agent did until it is graded, and takes it up again in a later try.

A final state is a folder: ``agent.json`` with what the run gave, ``files`` with the files of the try so far, and
``disk``, a copy of the sandbox's disk. It is written under another name and renamed when it is whole. A task that is
graded in a separate sandbox needs no disk: its verifier sees collected files only.

A state is not kept if grading would see more than the disk: processes of the agent, or files in memory. Then the trial
runs again. The content comes from a sandbox. It is copied by descriptors, without following links, within the limits of
one download.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

from harbor.models.task.verifier_mode import VerifierEnvironmentMode, resolve_task_verifier_mode
from harbor.models.trial.result import TrialResult
from harbor.trial.trial import Trial

from seatrial.adapters.runner_harbor.library_trial import GradedTrial
from seatrial.domain.frozen import Frozen
from seatrial.domain.trial import Mark
from seatrial.ports.runner import Order
from seatrial.sandboxes.host.in_root import closing
from seatrial.sandboxes.host.tree_copy import Budget, TransferLimits, TreeCopy
from seatrial.sandboxes.kept_state import FinalDisk
from seatrial.sandboxes.sandbox import Sandbox
from seatrial.system.removal import remove_tree

log = logging.getLogger(__name__)

_RECORD, _FILES, _DISK = "agent.json", "files", "disk"
_LONGEST_RECORD = 64 << 20
_UNPAID = ("oracle", "nop")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class AgentRun(Frozen):
    """What a run of an agent gave, for a later try that only grades it."""

    try_number: int
    sandbox: str
    image_digest: str | None
    result: str
    """Harbor's result so far, as JSON."""
    excuse: str | None = None
    marks: tuple[Mark, ...] = ()


class FinalState:
    """The final state of one try."""

    def __init__(
        self, order: Order, sandbox: str, limits: TransferLimits, excuse: Callable[[], str | None] = lambda: None
    ) -> None:
        """``excuse``: whether the model's service failed the agent."""
        self._order = order
        self._sandbox = sandbox
        self._limits = limits
        self._excuse = excuse

    @property
    def wanted(self) -> bool:
        """An agent that calls no provider costs nothing, and its run is as quick as a copy."""
        paid = self._order.agent.name not in _UNPAID and self._order.job.calls_providers
        return self._order.save_state_to is not None and paid

    async def save(self, trial: Trial) -> None:
        """Called between the agent's end and grading. A fault here must not cost the trial its grade."""
        target = self._order.save_state_to
        assert target is not None
        draft = target.with_name(f".{target.name}")
        try:
            reason = await self._write(trial, draft, target)
        except Exception as fault:
            reason = f"{type(fault).__name__}: {fault}"
        if reason:
            trial.logger.warning("The final state is not kept, so a lost worker costs the whole try: %s", reason)
            await asyncio.to_thread(remove_tree, draft)

    async def _write(self, trial: Trial, draft: Path, target: Path) -> str:
        environment = trial.agent_environment
        if not isinstance(environment, Sandbox):
            return "it is not a sandbox of Seatrial"
        await asyncio.to_thread(remove_tree, draft)
        draft.mkdir(mode=0o700)
        if resolve_task_verifier_mode(trial.task.config) is VerifierEnvironmentMode.SHARED and (
            reason := await environment.save_state(draft / _DISK)
        ):
            return reason
        run = AgentRun(
            try_number=self._order.trial.try_number,
            sandbox=self._sandbox,
            image_digest=environment.facts.image_digest,
            result=trial.result.model_dump_json(),
            excuse=self._excuse(),
            marks=(Mark.MEMORY_KILL,) if environment.facts.memory_killed else (),
        )
        return await asyncio.to_thread(self._finish, trial.paths.trial_dir, draft, target, run)

    def _finish(self, files: Path, draft: Path, target: Path, run: AgentRun) -> str:
        (draft / _FILES).mkdir(mode=0o700)
        copy_tree(files, draft / _FILES, self._limits)
        record = draft / _RECORD
        with record.open("w", encoding="utf-8") as file:
            file.write(run.model_dump_json())
            file.flush()
            os.fsync(file.fileno())
        draft.rename(target)
        return ""


class KeptRun:
    """A final state of an earlier try, to be graded now."""

    def __init__(self, folder: Path, run: AgentRun) -> None:
        self._folder = folder
        self.run = run
        self._result = TrialResult.model_validate_json(run.result)

    @classmethod
    async def read(cls, order: Order, sandbox: str) -> KeptRun | None:
        """``None`` if there is none, or none that this sandbox can take up."""
        if (earlier := order.earlier_state) is None:
            return None
        try:
            kept = await asyncio.to_thread(cls._read, earlier)
        except (OSError, ValueError) as fault:
            log.warning("The final state %s cannot be read, so the agent runs again: %s", earlier.name, fault)
            return None
        return kept if kept.run.sandbox == sandbox else None

    @classmethod
    def _read(cls, folder: Path) -> KeptRun:
        record = folder / _RECORD
        if record.stat().st_size > _LONGEST_RECORD:
            raise ValueError("its record is too large")
        return cls(folder, AgentRun.model_validate_json(record.read_bytes()))

    async def bring_files(self, order: Order, limits: TransferLimits) -> None:
        """The files of the earlier try, before Harbor's trial writes its own."""
        await asyncio.to_thread(copy_tree, self._folder / _FILES, order.work_dir, limits)

    def hand_to(self, trial: Trial) -> None:
        assert isinstance(trial, GradedTrial)
        trial.kept = self._result
        disk = self._folder / _DISK
        if disk.is_file() and isinstance(trial.agent_environment, Sandbox):
            trial.agent_environment.final_state = FinalDisk(disk, self.run.image_digest)

    @property
    def note(self) -> str:
        """For the trial's lock."""
        return f"agent's run: of try {self.run.try_number}, whose worker was lost before it was graded"


def copy_tree(source: Path, target: Path, limits: TransferLimits) -> None:
    with closing(os.open(source, _DIRECTORY)) as origin, closing(os.open(target, _DIRECTORY)) as goal:
        TreeCopy("out", Budget(limits)).run(origin, goal)
