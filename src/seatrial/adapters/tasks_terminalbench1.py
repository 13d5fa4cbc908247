"""Reads tasks of Terminal-Bench 1 (``task.yaml``) and converts them to Harbor tasks.

``prepare`` writes a Harbor task that behaves like the original:

- ``environment/``: the build context without tests and solution (see ``build_context``), and a compose file only if the
  original needs one (see ``compose``). If the task does not set processors and memory, the sandbox's defaults apply
  (1 CPU, 2 GB, or the operator's settings).
- ``solution/solve.sh``: runs ``solution.sh`` under bash, as the original does, or types ``solution.yaml`` into a
  terminal (see ``replay.sh``).
- ``tests/``: the task's tests and its ``run-tests.sh``, copied to ``/tests``, and a ``test.sh`` that
  runs ``run-tests.sh`` with ``TEST_DIR=/tests`` as root, parses its output like the task's parser, and writes the
  reward and ``ctrf.json`` (see ``grade.sh``).

Two decisions about grading. If the output contains no result, the tests did not run. Terminal-Bench calls that a parse
error, neither resolved nor unresolved. Here no reward is written, so the trial ends as an *error* of the verifier and
not as a failure. And tests do not run in a login shell as in Terminal-Bench, because an agent could have edited the
files that such a shell reads.

``SEATRIAL_TEST_TIMEOUT_SEC`` in the verifier's environment replaces the task's ``max_test_timeout_sec``, for jobs that
multiply timeouts.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from seatrial.adapters.task_problems import Problems, check_script, check_tree
from seatrial.adapters.task_rights import rights_of
from seatrial.adapters.terminalbench1.build_context import copy_context, copy_entry
from seatrial.adapters.terminalbench1.compose import COMPOSE, TESTS_DIR, Container, read_container
from seatrial.adapters.terminalbench1.config import CONFIG, ParserName, TerminalBench1Config, read_config
from seatrial.adapters.terminalbench1.solution import SOLUTION_YAML, read_solution, replay_script
from seatrial.adapters.terminalbench1.toml_text import toml_text
from seatrial.domain.task import Resources, Task, TaskFormat
from seatrial.errors import InvalidTask
from seatrial.ports.tasks import Inspection
from seatrial.system.removal import scratch_directory
from seatrial.task_content.digest import content_digest
from seatrial.task_content.tree import walk

_RUN_TESTS = "run-tests.sh"
_SOLUTION_SH = "solution.sh"
_BUILD_TIMEOUT_SEC = 1800.0
_GRACE_SEC = 60.0
"""Harbor's limit is this much longer than the task's own, so that ``test.sh`` can always write its result."""


class TerminalBench1Tasks:
    """Reads tasks of Terminal-Bench 1 and converts them to Harbor's format."""

    format = TaskFormat.TERMINAL_BENCH_1

    def recognises(self, root: Path) -> bool:
        return (root / CONFIG).is_file() and not (root / "task.toml").is_file()

    def inspect(self, root: Path) -> Inspection:
        problems = Problems()
        name = root.resolve().name
        entries = check_tree(root, problems)
        config, container = _read(root, problems)
        if config is None or problems.fatal:
            return Inspection(name=name, task=None, problems=problems.all)
        rights = rights_of(root, COMPOSE, f"{container.context}/{container.dockerfile}")
        task = Task(
            digest=content_digest(root),
            name=name,
            format=TaskFormat.TERMINAL_BENCH_1,
            instruction=config.words,
            category=config.category,
            difficulty=config.difficulty,
            tags=config.tags,
            agent_timeout_sec=config.max_agent_timeout_sec,
            verifier_timeout_sec=config.max_test_timeout_sec,
            build_timeout_sec=_BUILD_TIMEOUT_SEC,
            resources=Resources(cpus=container.cpus, memory_mb=container.memory_mb, gpus=container.gpus),
            docker_image=container.image,
            services=container.services,
            architecture=rights.architecture,
            elevated=rights.elevated,
            has_solution=any((root / file).is_file() for file in (_SOLUTION_SH, SOLUTION_YAML)),
            size_bytes=sum(entry.size for entry in entries),
            warnings=problems.warnings,
        )
        return Inspection(name=name, task=task, problems=problems.all)

    def prepare(self, root: Path, into: Path) -> Path:
        """Writes the Harbor task at ``into``, completely or not at all. An existing one is used as it is."""
        if into.is_dir():
            return into
        problems = Problems()
        config, container = _read(root, problems)
        if config is None or problems.fatal:
            raise InvalidTask(root.resolve().name, problems.all)
        into.parent.mkdir(parents=True, exist_ok=True)
        with scratch_directory(".prepare-", into.parent) as scratch:
            partial = scratch / into.name
            partial.mkdir()
            _Mapping(root, partial, config, container).write()
            try:
                partial.rename(into)
            except OSError:
                if not into.is_dir():
                    raise
                # another process has written the same task
        return into


class _Mapping:
    """Converts one task to Harbor's format."""

    def __init__(self, root: Path, into: Path, config: TerminalBench1Config, container: Container) -> None:
        self._root = root
        self._into = into
        self._config = config
        self._container = container

    def write(self) -> None:
        (self._into / "instruction.md").write_text(self._config.words.rstrip("\n") + "\n")
        (self._into / "task.toml").write_text(self._task_toml())
        self._environment()
        self._solution()
        self._tests()

    def _task_toml(self) -> str:
        config, container = self._config, self._container
        return toml_text(
            {
                "": {"schema_version": "1.4"},
                "metadata": {
                    "format": TaskFormat.TERMINAL_BENCH_1.value,
                    "author_name": config.author_name,
                    "author_email": config.author_email,
                    "difficulty": config.difficulty,
                    "category": config.category,
                    "tags": config.tags,
                    "expert_time_estimate_min": config.expert_time_estimate_min,
                    "junior_time_estimate_min": config.junior_time_estimate_min,
                },
                "agent": {"timeout_sec": config.max_agent_timeout_sec},
                "verifier": {"timeout_sec": config.max_test_timeout_sec + _GRACE_SEC, "user": "root"},
                "environment": {
                    "build_timeout_sec": _BUILD_TIMEOUT_SEC,
                    "docker_image": container.image,
                    "cpus": container.cpus,
                    "memory_mb": container.memory_mb,
                    "gpus": container.gpus or None,
                    "workdir": container.workdir,
                },
                "environment.env": {"TEST_DIR": TESTS_DIR, **container.env},
            }
        )

    def _environment(self) -> None:
        """The context of a single container becomes the environment. With several containers the layout stays."""
        folder = self._into / "environment"
        folder.mkdir()
        container = self._container
        if container.image is not None and container.compose is None:
            return
        context = "." if container.services else container.context
        dockerfiles = [self._root / file for file in container.build_files]
        copy_context(self._root, context, dockerfiles, folder)
        if container.compose is not None:
            (folder / COMPOSE).write_text(container.compose)
        if not container.services and container.dockerfile != "Dockerfile":
            copy_entry(self._root / container.context / container.dockerfile, folder / "Dockerfile")

    def _solution(self) -> None:
        folder = self._into / "solution"
        if (self._root / _SOLUTION_SH).is_file():
            copy_entry(self._root / _SOLUTION_SH, folder / _SOLUTION_SH)
            _write_script(folder / "solve.sh", f'#!/bin/bash\nexec bash "${{0%/*}}/{_SOLUTION_SH}"\n')
        elif (self._root / SOLUTION_YAML).is_file():
            folder.mkdir()
            _write_script(folder / "solve.sh", replay_script(read_solution(self._root, Problems())))

    def _tests(self) -> None:
        folder = self._into / "tests"
        copy_entry(self._root / _RUN_TESTS, folder / _RUN_TESTS)
        if (self._root / "tests").is_dir():
            for entry in walk(self._root / "tests"):
                target = folder / (".task-test.sh" if entry.path == "test.sh" else entry.path)
                target.unlink(missing_ok=True)
                copy_entry(entry.source, target)
        _write_script(folder / "test.sh", grading_script(self._config.parser_name, self._config.max_test_timeout_sec))


def _read(root: Path, problems: Problems) -> tuple[TerminalBench1Config | None, Container]:
    config = read_config(root, problems)
    container = read_container(root, problems)
    _check_files(root, container, problems)
    return config, container


def _check_files(root: Path, container: Container, problems: Problems) -> None:
    if not (root / _RUN_TESTS).is_file():
        problems.error(_RUN_TESTS, "is missing.", fix="Add the script that runs the tests.")
    check_script(root, _RUN_TESTS, problems)
    if not (root / "tests").is_dir():
        problems.warn(
            "tests", "is missing; run-tests.sh must contain or fetch its own tests.", fix="Add a tests folder."
        )
    if (root / _SOLUTION_SH).is_file():
        check_script(root, _SOLUTION_SH, problems)
    elif (root / SOLUTION_YAML).is_file():
        read_solution(root, problems)
    else:
        problems.warn(_SOLUTION_SH, "is missing; the oracle cannot solve the task.", fix="Add a solution.sh.")
    dockerfile = Path(container.context) / container.dockerfile
    if container.image is None and not (root / dockerfile).is_file():
        problems.error(str(dockerfile), "is missing.", fix="Add a Dockerfile, or an image in docker-compose.yaml.")
    if container.services:
        problems.warn(
            COMPOSE,
            f"needs further services ({', '.join(container.services)}), which only a container engine can run.",
            fix="Run this task with the docker sandbox.",
        )


def _write_script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def grading_script(parser: ParserName, limit_sec: float, logs: str = "/logs/verifier") -> str:
    """The ``test.sh`` of a mapped task: runs ``run-tests.sh`` beside it and writes reward and per-test results below
    ``logs``. ``grade.sh`` is its body and says what it does."""
    body = (Path(__file__).parent / "terminalbench1" / "grade.sh").read_text()
    return f"#!/bin/bash\nparser={parser}\nlimit={limit_sec:g}\nlogs={shlex.quote(logs)}\n{body}"
