"""Reads the ``docker-compose.yaml`` of a Terminal-Bench 1 task: one part becomes ``task.toml``, the rest stays compose.

Nearly every task has one service called ``client`` with the same boilerplate, which Harbor provides. For further
services, or keys that change how the container runs (host networking, devices, mounts …), a compose file in Harbor's
form is written beside the Dockerfile. The sandbox decides whether it runs it.
"""

from __future__ import annotations

import math
import re
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from seatrial.adapters.positions import KeyPath, line_of, yaml_positions
from seatrial.adapters.task_problems import Problems, read_text, read_yaml
from seatrial.domain.frozen import Frozen
from seatrial.domain.sizes import bytes_of
from seatrial.domain.substitution import Malformed, escaped, substitute

COMPOSE = "docker-compose.yaml"
TESTS_DIR = "/tests"
_MAIN = "main"
_KNOWN_VARIABLES = {
    "T_BENCH_TEST_DIR": TESTS_DIR,
    "T_BENCH_CONTAINER_LOGS_PATH": "/logs",
    "T_BENCH_TASK_DOCKER_NAME_PREFIX": "tb1",
}
_LOG_VARIABLES = ("T_BENCH_TASK_LOGS_PATH", "T_BENCH_TASK_AGENT_LOGS_PATH")
_WITHOUT_EFFECT = {"container_name", "image", "platform", "ports", "expose", "stdin_open", "tty", "restart", "init"}
_MAPPED = {"build", "environment", "working_dir", "mem_limit", "cpus", "command", "volumes", "deploy", "depends_on"}
_KINDS: dict[str, tuple[type, ...]] = {
    "build": (str, dict),
    "image": (str,),
    "environment": (dict, list),
    "working_dir": (str,),
    "networks": (dict, list),
    "volumes": (list,),
    "depends_on": (dict, list),
    "deploy": (dict,),
}
_MOST = 10**9
"""Maximum of processors, megabytes and GPUs: more than any machine has."""
_IDLE_COMMAND = re.compile(r"^(sh|bash|/bin/sh|/bin/bash)? ?(-c)? ?['\"]?(sleep infinity|tail -f /dev/null)['\"]?$")


class Container(Frozen):
    """How the agent's container is built and run."""

    context: str = "."
    dockerfile: str = "Dockerfile"
    image: str | None = None
    env: dict[str, str] = {}
    workdir: str | None = None
    cpus: int | None = None
    memory_mb: int | None = None
    gpus: int = 0
    services: tuple[str, ...] = ()
    """Services other than the agent's."""
    compose: str | None = None
    """A compose file in Harbor's form, if one is needed."""
    build_files: tuple[str, ...] = ("Dockerfile",)
    """Every Dockerfile, relative to the task."""


def read_container(root: Path, problems: Problems) -> Container:
    """The container of the compose file, or the default container if there is none."""
    text = read_text(root, COMPOSE, problems)
    if text is None:
        return Container()
    raw = read_yaml(text, COMPOSE, problems)
    services = raw.get("services") if isinstance(raw, dict) else None
    if not isinstance(services, dict) or not all(isinstance(service, dict) for service in services.values()):
        if not problems.fatal:
            problems.error(COMPOSE, "has no services.", line=1, fix="Add a 'services' mapping with 'client' in it.")
        return Container()
    reading = _Reading(root, raw, text, problems)
    return reading.container()


class _Reading:
    def __init__(self, root: Path, raw: dict[str, Any], text: str, problems: Problems) -> None:
        self._root = root
        self._raw = raw
        self._problems = problems
        self._positions = yaml_positions(text)
        self._services: dict[str, dict[str, Any]] = raw["services"]
        self._name = "client" if "client" in self._services else next(iter(self._services), "client")
        self._main = self._services.get(self._name, {})
        self._env: dict[str, str] = {}

    def container(self) -> Container:
        """``Container()`` and a problem if the file is invalid or refers to files outside the task."""
        for name, service in self._services.items():
            self._check_shape(name, service)
            self._check_inside(name, service)
        return Container() if self._problems.fatal else self._understood()

    def _understood(self) -> Container:
        context, dockerfile = _build(self._main)
        self._env = self._environment()
        image = None
        if "build" not in self._main and not (self._root / "Dockerfile").is_file():
            image = self._text("image") or None
        limits = _dig(self._main, "deploy", "resources", "limits")
        return Container(
            context=context,
            dockerfile=dockerfile,
            image=image,
            env=self._env,
            workdir=self._text("working_dir") if "working_dir" in self._main else None,
            cpus=_cpus(limits.get("cpus", self._main.get("cpus"))),
            memory_mb=_megabytes(limits.get("memory", self._main.get("mem_limit"))),
            gpus=_gpus(self._main),
            services=tuple(name for name in self._services if name != self._name),
            compose=self._harbor_compose(),
            build_files=tuple(str(PurePosixPath(*_build(service))) for service in self._services.values()),
        )

    def _check_inside(self, name: str, service: dict[str, Any]) -> None:
        """The context and the Dockerfile are copied, so both must be inside the task."""
        context, dockerfile = _build(service)
        paths = {"build context": (context,), "Dockerfile": (context, dockerfile)}
        for what, parts in paths.items():
            if any(_leads_out(part) for part in parts) or not _stays_inside(self._root, *parts):
                self._refuse(name, "build", f"{what} {parts[-1]!r} is outside the task.", "Move it into the task.")
                return

    def _check_shape(self, name: str, service: dict[str, Any]) -> None:
        """Reports values of a wrong type."""
        for key, kinds in _KINDS.items():
            value = service.get(key)
            if value is not None and not isinstance(value, kinds):
                self._refuse(name, key, f"{key}: has a value of the wrong type.", "See the compose file format.")
        networks = service.get("networks")
        if isinstance(networks, list) and not all(isinstance(network, str) for network in networks):
            self._refuse(name, "networks", "networks: each name must be a string.", "Write one name per line.")
        if isinstance(networks, dict) and not all(isinstance(how, dict | None) for how in networks.values()):
            self._refuse(name, "networks", "networks: each must be a mapping or empty.", "Write 'name: {}'.")
        limits = _dig(service, "deploy", "resources", "limits")
        sizes = {"cpus": _cpus, "mem_limit": _megabytes}
        for key, read in sizes.items():
            given = limits.get("cpus" if key == "cpus" else "memory", service.get(key))
            if given is not None and "$" not in str(given) and read(given) is None:
                self._refuse(name, key, f"{key}: is not an amount that a machine has.", "Write a number, such as 2.")

    def _refuse(self, name: str, key: str, message: str, fix: str) -> None:
        line = line_of(self._positions, ["services", name, key])
        self._problems.error(COMPOSE, f"services.{name}: {message}", line=line, fix=fix)

    def _environment(self) -> dict[str, str]:
        given = self._main.get("environment") or {}
        pairs = given.items() if isinstance(given, dict) else (str(item).partition("=")[::2] for item in given)
        place = ("services", self._name, "environment")
        return {str(key): self._filled("" if value is None else str(value), place) for key, value in pairs}

    def _text(self, key: str) -> str:
        return self._filled(str(self._main.get(key) or ""), ("services", self._name, key))

    def _filled(self, text: str, place: KeyPath) -> str:
        """Terminal-Bench's variables and defaults filled in. Never uses this machine's environment."""
        line = line_of(self._positions, place)

        def missing(name: str, required: str | None) -> str:
            if required is not None or not name.startswith("T_BENCH_"):
                fix = f"Write the value, or a default: ${{{name}:-value}}."
                self._problems.warn(COMPOSE, f"${{{name}}} is not known here and is left empty.", line=line, fix=fix)
            return ""

        try:
            return substitute(text, _KNOWN_VARIABLES.get, missing)
        except Malformed as problem:
            self._problems.error(COMPOSE, f"{problem}.", line=line, fix="Write $$ for a plain $.")
            return ""

    def _for_compose(self, node: Any, place: KeyPath) -> Any:
        """The same for a part of the new file, which compose reads once more."""
        if isinstance(node, dict):
            return {key: self._for_compose(value, (*place, str(key))) for key, value in node.items()}
        if isinstance(node, list):
            return [self._for_compose(value, (*place, index)) for index, value in enumerate(node)]
        return escaped(self._filled(node, place)) if isinstance(node, str) else node

    def _special_keys(self) -> dict[str, Any]:
        """Keys of the main service that neither ``task.toml`` nor Harbor can express."""
        special = {key: value for key, value in self._main.items() if key not in _WITHOUT_EFFECT | _MAPPED}
        if mounts := _own_volumes(self._main):
            special["volumes"] = mounts
        if "command" in self._main and not _is_idle(self._main["command"]):
            special["command"] = self._main["command"]
        if isinstance(self._main.get("build"), dict) and set(self._main["build"]) - {"context", "dockerfile"}:
            # The context of a single container becomes the environment itself.
            special["build"] = {**self._main["build"], "context": ".", "dockerfile": "Dockerfile"}
        return special

    def _harbor_compose(self) -> str | None:
        special = self._special_keys()
        if not special and len(self._services) == 1:
            return None
        main = self._for_compose(special, ("services", self._name))
        if len(self._services) > 1 and _build(self._main) != (".", "Dockerfile"):
            main["build"] = self._for_compose(self._main["build"], ("services", self._name, "build"))
        if self._env:
            main["environment"] = {name: escaped(value) for name, value in self._env.items()}
        others = {
            name: self._for_compose(self._other(service), ("services", name))
            for name, service in self._services.items()
            if name != self._name
        }
        if others:
            main["depends_on"] = self._main.get("depends_on", list(others))
            main["networks"] = self._reachable(main.get("networks")) if "network_mode" not in main else None
        kept = {key: value for key, value in self._raw.items() if key not in ("services", "version")}
        document = self._for_compose(kept, ())
        document["services"] = {_MAIN: {key: value for key, value in main.items() if value is not None}, **others}
        return str(yaml.safe_dump(document, sort_keys=True, allow_unicode=True))

    def _other(self, service: dict[str, Any]) -> dict[str, Any]:
        """Another service, without names and ports that would conflict between two trials."""
        kept = {key: value for key, value in service.items() if key not in ("container_name", "volumes", "ports")}
        if "build" in kept:
            kept.pop("image", None)
        if mounts := _own_volumes(service):
            kept["volumes"] = mounts
        waits = kept.get("depends_on")
        if isinstance(waits, list):
            kept["depends_on"] = [_MAIN if name == self._name else name for name in waits]
        elif isinstance(waits, dict):
            kept["depends_on"] = {_MAIN if name == self._name else name: how for name, how in waits.items()}
        if kept.get("network_mode") == f"service:{self._name}":
            kept["network_mode"] = f"service:{_MAIN}"
        return kept

    def _reachable(self, networks: Any) -> dict[str, Any]:
        """The main service keeps its old name as an alias, because other services may use it."""
        names = list(networks) if networks else ["default"]
        given = networks if isinstance(networks, dict) else {}
        return {name: {**(given.get(name) or {}), "aliases": [self._name]} for name in names}


def _build(service: dict[str, Any]) -> tuple[str, str]:
    build = service.get("build")
    if isinstance(build, str):
        return build, "Dockerfile"
    build = build if isinstance(build, dict) else {}
    return str(build.get("context") or "."), str(build.get("dockerfile") or "Dockerfile")


def _own_volumes(service: dict[str, Any]) -> list[Any]:
    """Mounts other than Terminal-Bench's logs, which Harbor handles itself."""
    volumes = service.get("volumes")
    if not isinstance(volumes, list):
        return []
    return [volume for volume in volumes if not any(variable in str(volume) for variable in _LOG_VARIABLES)]


def _is_idle(command: Any) -> bool:
    text = " ".join(str(part) for part in command) if isinstance(command, list) else str(command)
    return bool(_IDLE_COMMAND.match(text.strip()))


def _dig(service: dict[str, Any], *keys: str) -> dict[str, Any]:
    value: Any = service
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _leads_out(path: str) -> bool:
    return ".." in PurePosixPath(path).parts or PurePosixPath(path).is_absolute() or "\0" in path


def _stays_inside(root: Path, *parts: str) -> bool:
    return root.joinpath(*parts).resolve().is_relative_to(root.resolve())


def _cpus(value: Any) -> int | None:
    try:
        amount = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return max(1, math.ceil(amount)) if 0 < amount < _MOST else None


def _megabytes(value: Any) -> int | None:
    found = bytes_of(str(value))
    if found is None:
        return None
    amount = found / (1 << 20)
    return max(1, math.ceil(amount)) if amount < _MOST else None


def _gpus(service: dict[str, Any]) -> int:
    devices = _dig(service, "deploy", "resources", "reservations").get("devices")
    wanted = 0
    for device in devices if isinstance(devices, list) else []:
        if isinstance(device, dict) and "gpu" in str(device.get("capabilities")):
            named = device.get("device_ids")
            count = device.get("count", len(named) if isinstance(named, list) and named else 1)
            wanted += count if isinstance(count, int) and 0 < count < _MOST else 1
    return wanted
