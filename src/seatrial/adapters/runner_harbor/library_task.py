"""What Harbor reads of a task's directory, read once: its settings, its instruction, and the digests of its files.

Harbor reads and hashes the whole directory several times for every trial. A directory of the library never changes
once it is there, so ``library_trial`` keeps what was read and gives every trial a copy of its own.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Self, override

from harbor.models.job.lock import TrialLock, VerifierLock, build_trial_lock
from harbor.models.task.task import Task
from harbor.models.trial.config import TaskConfig, TrialConfig
from harbor.tasks.client import TaskDownloadResult


class LibraryTask(Task):
    """A task of Harbor's that knows the digests of its directory."""

    def __init__(self, directory: Path) -> None:
        """Reads and hashes everything; seconds for a large task."""
        super().__init__(directory)
        self.found = TaskDownloadResult(path=directory, download_time_sec=0.0, cached=True)
        self._lock = build_trial_lock(
            trial_config=TrialConfig(task=TaskConfig(path=directory)), task_download_result=self.found
        )
        self._checksum: str = super().checksum

    @property
    @override
    def checksum(self) -> str:
        return self._checksum

    def copy(self) -> Self:
        """For one trial: what a trial may write to is its own."""
        own = copy.copy(self)
        own.config = self.config.model_copy(deep=True)
        return own

    def lock(self, config: TrialConfig) -> TrialLock:
        """Harbor's lock of a trial of this task: the task as it was found, the rest as the trial is configured."""
        return self._lock.model_copy(
            update={
                "task": self._lock.task.model_copy(),
                "timeout_multiplier": config.timeout_multiplier,
                "agent": config.agent,
                "environment": config.environment,
                "verifier": VerifierLock(
                    **dict(config.verifier), environment_mode=self._lock.verifier.environment_mode
                ),
            }
        )
