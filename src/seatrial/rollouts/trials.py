"""Creates the Harbor trial behind a rollout. Called by ``RolloutHost`` on its own loop."""

from __future__ import annotations

from pathlib import Path

from harbor.models.trial.config import AgentConfig, TaskConfig, TrialConfig, VerifierConfig
from harbor.trial.trial import Trial

from seatrial.adapters.runner_harbor.config import environment_config, verifier_env
from seatrial.rollouts.agent import IMPORT_PATH
from seatrial.rollouts.open_trial import OpenTrial
from seatrial.rollouts.rules import RolloutRules
from seatrial.rollouts.tasks import FoundTask
from seatrial.sandboxes.options import Owner, SandboxOptions
from seatrial.sandboxes.own_values import own_values
from seatrial.sandboxes.selection import SandboxSelection


class TrialMaker:
    def __init__(self, options: SandboxOptions, rules: RolloutRules, owner: Owner) -> None:
        self._options = options
        self._rules = rules
        self._owner = owner
        self._sandboxes = SandboxSelection(options)

    async def make(self, task: FoundTask, directory: Path) -> OpenTrial:
        """A try that has not started yet; its files will be in ``directory``."""
        sandbox = await self._sandboxes.choose(self._rules.sandbox, task.task)
        trial = await Trial.create(self._config(task, sandbox, directory))
        # Harbor would replace ${NAME} from this process's environment: a trainer's, with its keys.
        trial.task.config.verifier.env = own_values(trial.task.config.verifier.env)
        return OpenTrial(trial, directory, longest_answer=self._rules.longest_answer)

    def _config(self, task: FoundTask, sandbox: str, directory: Path) -> TrialConfig:
        stretch = self._rules.timeout_multiplier
        return TrialConfig(
            task=TaskConfig(path=task.directory),
            trials_dir=directory.parent,
            trial_name=directory.name,
            timeout_multiplier=stretch,
            agent=AgentConfig(import_path=IMPORT_PATH, override_timeout_sec=self._agent_limit(task)),
            verifier=VerifierConfig(env=verifier_env(task.task, stretch)),
            environment=environment_config(sandbox, self._rules.force_build, self._owner, self._options),
        )

    def _agent_limit(self, task: FoundTask) -> float | None:
        limit, grace = task.task.agent_timeout_sec, self._rules.grace_sec
        return limit + grace / self._rules.timeout_multiplier if grace and limit is not None else None
