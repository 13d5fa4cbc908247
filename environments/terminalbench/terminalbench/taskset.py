"""The taskset: all Terminal-Bench tasks of a folder, of archives or of a registered dataset, in both formats."""

import os
from collections.abc import Iterator
from pathlib import Path

import verifiers.v1 as vf
from seatrial.errors import NotFound
from seatrial.rollouts.images import EngineImages
from seatrial.rollouts.tasks import FoundTask, TaskFinder
from seatrial.settings import Settings

from terminalbench.config import PLACE_VARIABLE, USUAL_PLACE, TerminalBenchConfig
from terminalbench.in_runtime import allowed_network
from terminalbench.task import TerminalBenchData, TerminalBenchTask
from terminalbench.toolset import TerminalBenchToolset

SYSTEM_PROMPT = """You solve a task in a Linux container. Use the tool `execute_commands` to run shell commands in it; \
they must not wait for input. When the task is done, answer without calling the tool: then the task's tests are run."""
_SLACK_SEC = 120.0
"""Time for starting and removing a sandbox, in addition to the task's limits for build and tests."""


class TerminalBenchTaskset(vf.Taskset[TerminalBenchTask, TerminalBenchConfig]):
    @classmethod
    def toolsets(cls, config: TerminalBenchConfig) -> list[vf.Toolset]:
        return [TerminalBenchToolset(config.tools)] if config.place == "sandbox" else []

    def load(self) -> Iterator[TerminalBenchTask]:
        settings = Settings()
        finder = TaskFinder(settings)
        if self.config.dataset is not None and self.config.tasks is None:
            found = finder.dataset(self.config.dataset, self.config.selection)
        else:
            found = finder.in_place(_place(self.config.tasks), self.config.selection)
        images = EngineImages(settings) if self.config.place == "runtime" else None
        for task in found.tasks:
            yield TerminalBenchTask(self._data(task, settings, images), self.config.task)

    def _data(self, found: FoundTask, settings: Settings, images: EngineImages | None) -> TerminalBenchData:
        task, stretch = found.task, self.config.task.timeout_multiplier
        data = TerminalBenchData(
            id=task.digest,
            name=task.name,
            description=task.description or None,
            prompt=task.instruction,
            system_prompt=SYSTEM_PROMPT if images is None else None,
            found=found.model_copy(update={"task": task.model_copy(update={"instruction": ""})}),
            place=self.config.place,
            category=task.category,
            difficulty=task.difficulty,
            tags=task.tags,
            timeout=_timeouts(found, stretch),
        )
        if images is None:
            return data
        image = images.image(found)
        resources = task.resources
        return data.model_copy(
            update={
                "image": image.tag,
                "workdir": image.workdir,
                "network_allow": allowed_network(found),
                "resources": vf.TaskResources(
                    cpu=resources.cpus or settings.default_cpus,
                    memory=(resources.memory_mb or settings.default_memory_mb) / 1024,
                    disk=resources.storage_mb / 1024 if resources.storage_mb else None,
                ),
            }
        )


def _timeouts(found: FoundTask, stretch: float) -> vf.TaskTimeout:
    def stretched(limit: float | None, slack: float = 0.0) -> float | None:
        return None if limit is None else limit * stretch + slack

    task = found.task
    return vf.TaskTimeout(
        setup=stretched(task.build_timeout_sec, _SLACK_SEC),
        agent=stretched(task.agent_timeout_sec),
        finalize=stretched(task.verifier_timeout_sec, _SLACK_SEC),
    )


def _place(tasks: Path | None) -> Path:
    named = tasks or os.environ.get(PLACE_VARIABLE)
    if named:
        return Path(named).expanduser()
    if USUAL_PLACE.is_dir():
        return USUAL_PLACE
    raise NotFound(f"There is no folder {USUAL_PLACE}.", fix=f"Pass --env.taskset.tasks, or set {PLACE_VARIABLE}.")
