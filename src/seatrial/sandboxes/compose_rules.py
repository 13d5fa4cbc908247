"""What a task's compose file may contain. Everything that is not allowed here is refused, with the reason.

Pure. ``compose`` asks for each file before anything is started. A key that lets a container reach the machine, another
container, a file outside of the task or a variable of the worker is never allowed; one that means nothing for a sandbox
is allowed and has no effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from seatrial.domain.substitution import Malformed, Variable, only_variable, parse, substitute, variables

Check = Callable[["Rules", Any], Iterator[str]]

HARBOR_LOG_SOURCES = frozenset({"HOST_VERIFIER_LOGS_PATH", "HOST_AGENT_LOGS_PATH", "HOST_ARTIFACTS_PATH"})
"""Log directories of the machine. Harbor sets them for compose, whatever the task says."""
LOG_SOURCES = HARBOR_LOG_SOURCES | {"T_BENCH_TASK_LOGS_PATH", "T_BENCH_TASK_AGENT_LOGS_PATH"}
"""A mount of one of them becomes a directory of the sandbox."""
KNOWN_VARIABLES = frozenset(
    {
        *LOG_SOURCES,
        *("T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME", "T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME"),
        *("T_BENCH_TASK_DOCKER_NAME_PREFIX", "T_BENCH_TEST_DIR", "T_BENCH_CONTAINER_LOGS_PATH"),
        *("T_BENCH_CONTAINER_AGENT_LOGS_PATH", "CONTEXT_DIR", "MAIN_IMAGE_NAME", "PREBUILT_IMAGE_NAME", "TEST_DIR"),
        *("ENV_VERIFIER_LOGS_PATH", "ENV_AGENT_LOGS_PATH", "ENV_ARTIFACTS_PATH", "CPUS", "MEMORY"),
    }
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_FALSE = (None, False, "", "false", "False", "no", "off")
_DEPTH = 40


class Rules:
    """The rules for one task's file. ``for_compose``: compose itself fills in the variables, and the task can set most
    of them, in its environment or in a file called ``.env``."""

    def __init__(self, directory: Path, *, allow_privileged: bool = False, for_compose: bool = False) -> None:
        self._directory = directory.resolve()
        self._allow_privileged = allow_privileged
        self._log_sources = HARBOR_LOG_SOURCES if for_compose else LOG_SOURCES

    def document(self, document: Any) -> Iterator[str]:
        """Every reason to refuse it."""
        if not isinstance(document, dict) or not isinstance(document.get("services"), dict):
            yield "it has no services"
            return
        if _deeper_than(document, _DEPTH):
            yield f"it is nested deeper than {_DEPTH} levels"
            return
        if malformed := _malformed(document):
            yield from malformed
            return
        yield from self._variables(document)
        for key, value in document.items():
            if key in ("services", "version", "name") or str(key).startswith("x-"):
                continue
            check = _TOP.get(str(key))
            yield from check(self, value) if check else [f"{key}: not allowed"]
        for name, service in document["services"].items():
            if not isinstance(service, dict):
                yield f"services.{name}: is not a mapping"
                continue
            for key, value in service.items():
                check = _SERVICE.get(str(key))
                found = check(self, value) if check else ["not allowed"]
                yield from (f"services.{name}.{key}: {reason}" for reason in found)

    def inside(self, path: str) -> bool:
        """Whether a path, links followed, stays in the task's environment directory."""
        if any(variable != Variable("CONTEXT_DIR") for variable in variables(path)):
            return False
        path = substitute(path, {"CONTEXT_DIR": "."}.get, missing=lambda name, _: name)
        if path.startswith(("~", "git@")) or "://" in path:
            return False
        return (self._directory / path).resolve().is_relative_to(self._directory)

    def _variables(self, document: Any) -> Iterator[str]:
        names = {variable.name for text in _texts(document) for variable in variables(text)}
        for name in sorted(names - KNOWN_VARIABLES):
            yield f"${{{name}}}: variables of the worker are not given to tasks"

    def anything(self, value: Any) -> Iterator[str]:
        return iter(())

    def build(self, value: Any) -> Iterator[str]:
        parts = {"context": value} if isinstance(value, str) else value
        if not isinstance(parts, dict):
            yield "is not a mapping"
            return
        for key in sorted(set(map(str, parts)) - {"context", "dockerfile", "args", "target", "platforms", "labels"}):
            yield f"{key} is not allowed"
        context = str(parts.get("context") or ".")
        if not self.inside(context):
            yield f"the context {context!r} is outside of the task"
        elif not self.inside(f"{context}/{parts.get('dockerfile') or 'Dockerfile'}"):
            yield "the Dockerfile is outside of the task"
        yield from self.assignments(parts.get("args"))

    def assignments(self, value: Any) -> Iterator[str]:
        """A name without a value would be taken from the worker's environment."""
        for name, text in pairs(value):
            if text is None:
                yield f"{name} has no value, and would be taken from the worker"

    def files(self, value: Any) -> Iterator[str]:
        for entry in value if isinstance(value, list) else [value]:
            path = str(entry.get("path", "") if isinstance(entry, dict) else entry)
            if not self.inside(path):
                yield f"{path!r} is outside of the task"

    def never_true(self, value: Any) -> Iterator[str]:
        if value not in _FALSE and not self._allow_privileged:
            yield "the container would have the machine's own rights"

    def network_mode(self, value: Any) -> Iterator[str]:
        mode = str(value)
        if mode not in ("bridge", "default", "none") and not mode.startswith("service:"):
            yield f"{mode!r} is a network that is not the task's own"

    def volumes(self, value: Any) -> Iterator[str]:
        for entry in value if isinstance(value, list) else [value]:
            yield from _undecided(entry) or self._volume(volume(entry))

    def _volume(self, mount: Mapping[str, Any]) -> Iterator[str]:
        source, kind = str(mount.get("source") or ""), str(mount.get("type") or "")
        if set(mount) - {"type", "source", "target", "read_only", "volume", "tmpfs"}:
            yield f"{source or mount.get('target')!r} has options that are not allowed"
        if not source or kind == "tmpfs" or log_source(source, self._log_sources) or _NAME.fullmatch(source):
            return
        if not self.inside(source):
            yield f"{source!r} is a path of the machine"
        elif not mount.get("read_only"):
            yield f"{source!r} is the task's own file and must be mounted read-only"

    def extra_hosts(self, value: Any) -> Iterator[str]:
        yield from _undecided(value)
        if "host-gateway" in str(value):
            yield "host-gateway leads to the machine"

    def deploy(self, value: Any) -> Iterator[str]:
        parts = value if isinstance(value, dict) else {"": value}
        for key in sorted(set(map(str, parts)) - {"resources", "replicas"}):
            yield f"{key or 'this'} is not allowed"
        resources = parts.get("resources") or {}
        reserved = resources.get("reservations") if isinstance(resources, dict) else None
        if isinstance(reserved, dict) and reserved.get("devices"):
            yield "GPUs and other devices are not available here"

    def labels(self, value: Any) -> Iterator[str]:
        yield from _undecided(value)
        if "seatrial." in str(value) or "com.docker." in str(value):
            yield "names of Seatrial or of the engine may not be used"

    def networks(self, value: Any) -> Iterator[str]:
        for name, network in (value or {}).items() if isinstance(value, dict) else ():
            parts = network if isinstance(network, dict) else {}
            driver = str(parts.get("driver") or "bridge")
            if parts.get("external") or parts.get("name"):
                yield f"networks.{name}: is not the task's own"
            elif driver != "bridge" or set(parts) - {"driver", "internal", "labels", "driver_opts"}:
                yield f"networks.{name}: only plain bridges are allowed"
            elif parts.get("driver_opts"):
                yield f"networks.{name}: driver_opts are not allowed"

    def named_volumes(self, value: Any) -> Iterator[str]:
        for name, entry in (value or {}).items() if isinstance(value, dict) else ():
            if isinstance(entry, dict) and set(entry) - {"labels"}:
                yield f"volumes.{name}: only plain volumes are allowed, a driver or a name could bind anything"


_HARMLESS = (
    "image container_name command entrypoint working_dir user hostname domainname init tty stdin_open expose ports"
    " depends_on links healthcheck networks tmpfs dns dns_search stop_signal stop_grace_period restart platform"
    " mem_limit memswap_limit cpus pids_limit shm_size read_only pull_policy scale ulimits"
)
_SERVICE: dict[str, Check] = {
    **dict.fromkeys(_HARMLESS.split(), Rules.anything),
    "build": Rules.build,
    "environment": Rules.assignments,
    "env_file": Rules.files,
    "privileged": Rules.never_true,
    "network_mode": Rules.network_mode,
    "volumes": Rules.volumes,
    "extra_hosts": Rules.extra_hosts,
    "deploy": Rules.deploy,
    "labels": Rules.labels,
}
_TOP: dict[str, Check] = {"networks": Rules.networks, "volumes": Rules.named_volumes}


def _texts(node: Any) -> Iterator[str]:
    """Every text of the file, keys included."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _texts(key)
            yield from _texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value)


def _malformed(document: Any) -> list[str]:
    reasons = []
    for text in _texts(document):
        try:
            parse(text)
        except Malformed as problem:
            reasons.append(f"{problem}; write $$ for a plain $")
    return reasons


def _undecided(node: Any) -> list[str]:
    """A value that is checked must be the one that is used. Whether a default is, depends on who reads the file."""
    found = {variable.name for text in _texts(node) for variable in variables(text) if variable.operator}
    return [f"${{{name}}} may not have a default here" for name in sorted(found)]


def pairs(value: Any) -> list[tuple[str, str | None]]:
    """A mapping, or a list of ``NAME=value``."""
    if isinstance(value, dict):
        return [(str(name), None if text is None else str(text)) for name, text in value.items()]
    words = [str(entry) for entry in value] if isinstance(value, list) else []
    return [(name, text if equals else None) for name, equals, text in (word.partition("=") for word in words)]


def volume(entry: Any) -> dict[str, Any]:
    """``source:target:mode`` in its long form."""
    if isinstance(entry, dict):
        return dict(entry)
    parts = str(entry).split(":")
    if len(parts) == 1:
        return {"type": "volume", "target": parts[0]}
    modes = parts[2].split(",") if len(parts) > 2 else []
    return {"source": parts[0], "target": parts[1], "read_only": "ro" in modes}


def log_source(source: str, names: frozenset[str] = LOG_SOURCES) -> bool:
    variable = only_variable(source)
    return variable is not None and not variable.operator and variable.name in names


def _deeper_than(node: Any, levels: int) -> bool:
    """Also for a file whose anchors contain themselves."""
    if levels <= 0:
        return True
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return any(_deeper_than(child, levels - 1) for child in children if isinstance(child, dict | list))
