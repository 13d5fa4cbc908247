"""Reads one Harbor task directory: the task, and all of its problems.

Called by ``tasks_harbor``. Harbor's models decide what is valid, so that Harbor accepts the same tasks. This adds
lines, fixes, and problems that Harbor would only notice while a trial runs. It imports only ``harbor.models.task`` (no
LiteLLM), so an upload can be checked in any process.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harbor.models.task.config import StepConfig, TaskConfig
from harbor.models.task.paths import TaskPaths
from harbor.models.task.task import Task as HarborTask
from harbor.models.task.task import strip_canary
from harbor.models.task.verifier_mode import resolve_verifier_environment_definition

from seatrial.adapters.task_problems import Problems, check_script, check_tree, is_own_file, read_text, read_yaml
from seatrial.adapters.task_rights import rights_of
from seatrial.adapters.task_toml import CONFIG, read_task_toml
from seatrial.domain.task import Resources, Task, TaskFormat
from seatrial.ports.tasks import Inspection
from seatrial.task_content.digest import content_digest

_COMPOSE = "environment/docker-compose.yaml"
_DOCKERFILE = "environment/Dockerfile"
_MAIN_SERVICE = "main"
_REWARD_SEARCH_LIMIT = 4 * 1024 * 1024


class HarborInspection:
    """Reads one directory once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._paths = TaskPaths(root)
        self._problems = Problems()

    def inspection(self) -> Inspection:
        entries = check_tree(self._root, self._problems)
        config = read_task_toml(self._root, self._problems)
        services: tuple[str, ...] = ()
        if config is not None:
            services = self._services()
            self._check_files(config)
        else:
            self._check_usual_files()
        name = _name(config, self._root)
        if config is None or self._problems.fatal:
            return Inspection(name=name, task=None, problems=self._problems.all)
        rights = rights_of(self._root, _COMPOSE, _DOCKERFILE)
        task = Task(
            digest=content_digest(self._root),
            name=name,
            format=TaskFormat.HARBOR,
            instruction=self._instruction(config),
            services=services,
            architecture=rights.architecture,
            elevated=rights.elevated,
            has_solution=self._has_solution(config),
            size_bytes=sum(entry.size for entry in entries),
            warnings=self._problems.warnings,
            **_facts(config),
        )
        return Inspection(name=name, task=task, problems=self._problems.all)

    def _services(self) -> tuple[str, ...]:
        text = read_text(self._root, _COMPOSE, self._problems)
        if text is None:
            return ()
        compose = read_yaml(text, _COMPOSE, self._problems)
        services = compose.get("services") if isinstance(compose, dict) else None
        if not isinstance(services, dict):
            if compose is not None:
                self._problems.error(_COMPOSE, "has no services.", fix="Add a 'services' mapping.")
            return ()
        return tuple(str(name) for name in services if name != _MAIN_SERVICE)

    def _check_usual_files(self) -> None:
        """If the configuration cannot be read: checks the files that every single-step task needs, so that its author
        sees all problems at once."""
        if (self._root / "steps").is_dir():
            return
        usual = TaskConfig()
        config = self._root / CONFIG
        if config.is_file() and b"docker_image" not in config.read_bytes():
            self._check_environment(usual)
        self._check_step(usual, None)

    def _check_files(self, config: TaskConfig) -> None:
        self._check_environment(config)
        for step in config.steps or [None]:
            self._check_step(config, step)
        if self._problems.fatal:
            return
        try:  # checks that only Harbor has
            HarborTask._validate_input_paths(config, self._paths)
            HarborTask._validate_tests(config, self._paths)
        except (OSError, ValueError, RuntimeError) as refused:
            self._problems.error(CONFIG, str(refused).replace(f"{self._paths.task_dir}/", ""))

    def _check_environment(self, config: TaskConfig) -> None:
        folder = self._paths.environment_dir
        if config.environment.docker_image:
            return
        if not any((folder / name).is_file() for name in ("Dockerfile", "docker-compose.yaml")):
            self._problems.error(
                "environment",
                "has neither a Dockerfile nor a docker-compose.yaml.",
                fix="Add environment/Dockerfile, or set docker_image under [environment].",
            )

    def _check_step(self, config: TaskConfig, step: StepConfig | None) -> None:
        """A single-step task is checked like a step in the folder of the task."""
        prefix = f"steps/{step.name}/" if step else ""
        if step and not (self._root / prefix).is_dir():
            self._problems.error(
                prefix.rstrip("/"), "is missing.", fix="Add a folder of that name, or remove the step."
            )
            return
        self._check_instruction(f"{prefix}instruction.md")
        script = self._test_script(config, step)
        if script is None:
            return  # the verifier's image contains its tests
        places = (f"{prefix}tests/{script}", f"tests/{script}")
        found = next((path for path in places if is_own_file(self._root, path)), None)
        if found is None:
            self._problems.error(places[0], "is missing.", fix="Add the script that grades the task.")
            return
        check_script(self._root, found, self._problems)
        self._check_first_line(found)
        if not _mentions_reward(self._root / found, self._paths.tests_dir):
            self._problems.warn(
                found,
                "does not seem to write a reward.",
                fix="Write 0 or 1 to /logs/verifier/reward.txt, or named values to /logs/verifier/reward.json.",
            )

    def _test_script(self, config: TaskConfig, step: StepConfig | None) -> str | None:
        """The name of the grading script; ``None`` if the verifier's image contains it."""
        try:
            definition = resolve_verifier_environment_definition(config, self._paths, step)
        except ValueError:
            return "test.sh"  # a link leads out of the task, which is already reported
        if definition is not None and definition.bundled_tests:
            return None
        return "test.bat" if (definition.config if definition else config.environment).os == "windows" else "test.sh"

    def _check_first_line(self, script: str) -> None:
        if not script.endswith(".bat") and not (self._root / script).read_bytes().startswith(b"#!"):
            self._problems.warn(script, "has no '#!' line.", line=1, fix="Start it with #!/bin/bash.")

    def _check_instruction(self, file: str) -> None:
        text = read_text(self._root, file, self._problems)
        if text is not None and not text.strip():
            self._problems.error(file, "is empty.", fix="Say what the agent is to do.")
        if text is None and not (self._root / file).is_file():
            self._problems.error(file, "is missing.", fix="Add the text that the agent is given.")

    def _instruction(self, config: TaskConfig) -> str:
        if not config.steps:
            return str(strip_canary((self._root / "instruction.md").read_text("utf-8-sig")))
        texts = [(step.name, self._root / "steps" / step.name / "instruction.md") for step in config.steps]
        return "\n\n".join(
            f"## Step {number}: {name}\n\n{strip_canary(path.read_text('utf-8-sig')).strip()}"
            for number, (name, path) in enumerate(texts, 1)
        )

    def _has_solution(self, config: TaskConfig) -> bool:
        script = f"solve{'.bat' if config.environment.os == 'windows' else '.sh'}"
        shared = (self._root / "solution" / script).is_file()
        if not config.steps:
            return shared
        return all(
            shared or (self._root / "steps" / step.name / "solution" / script).is_file() for step in config.steps
        )


def _name(config: TaskConfig | None, root: Path) -> str:
    return str(config.task.short_name) if config is not None and config.task is not None else root.resolve().name


def _facts(config: TaskConfig) -> dict[str, Any]:
    """The configuration as fields of ``Task``."""
    environment = config.environment
    steps = config.steps or []
    tags = config.metadata.get("tags") or (config.task.keywords if config.task else [])
    agent_limits = [step.agent.timeout_sec for step in steps] or [config.agent.timeout_sec]
    verifier_limits = [step.verifier.timeout_sec for step in steps] or [config.verifier.timeout_sec]
    return {
        "description": config.task.description if config.task else "",
        "category": str(config.metadata.get("category") or ""),
        "difficulty": str(config.metadata.get("difficulty") or ""),
        "tags": tuple(str(tag) for tag in tags) if isinstance(tags, list) else (str(tags),),
        "steps": tuple(step.name for step in steps),
        "agent_timeout_sec": _sum(limit or config.agent.timeout_sec for limit in agent_limits),
        "verifier_timeout_sec": _sum(iter(verifier_limits)),
        "build_timeout_sec": environment.build_timeout_sec,
        "resources": Resources(
            cpus=environment.cpus,
            memory_mb=environment.memory_mb,
            storage_mb=environment.storage_mb,
            gpus=environment.gpus or 0,
        ),
        "docker_image": environment.docker_image,
        "network_mode": environment.network_mode.value if "network_mode" in environment.model_fields_set else None,
        "os": environment.os.value,
    }


def _sum(limits: Iterator[float | None]) -> float | None:
    """The sum over all steps; ``None`` if one has no limit."""
    known = list(limits)
    return None if any(limit is None for limit in known) else sum(limit for limit in known if limit is not None)


def _mentions_reward(script: Path, shared: Path) -> bool:
    """Whether the script, or a file beside it, mentions a reward. This is a guess, so it only gives a warning."""
    budget = _REWARD_SEARCH_LIMIT
    for path in (script, *sorted(script.parent.rglob("*")), *sorted(shared.rglob("*"))):
        if path.is_symlink() or not path.is_file() or budget <= 0:
            continue
        with path.open("rb") as content:
            text = content.read(budget)
        budget -= len(text)
        if b"reward" in text.lower():
            return True
    return False
