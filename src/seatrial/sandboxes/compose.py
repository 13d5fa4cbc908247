"""A task's compose file: refused, collapsed into one container, or left to an engine that can run several.

``definition`` calls ``read_compose`` before anything is started; the runner asks it whether a task needs
Harbor's own Docker environment. Pure apart from reading the files. Terminal-Bench 1 gives every task such a file,
nearly always with one service.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from seatrial.domain.frozen import Frozen
from seatrial.domain.sizes import bytes_of
from seatrial.domain.substitution import substitute
from seatrial.errors import InvalidInput
from seatrial.sandboxes.compose_rules import Rules, log_source, pairs, volume

FILE = "docker-compose.yaml"
_SIZE_LIMIT = 1 << 20
_KNOWN = {
    "CONTEXT_DIR": ".",
    "T_BENCH_TEST_DIR": "/tests",
    "TEST_DIR": "/tests",
    "T_BENCH_CONTAINER_LOGS_PATH": "/logs",
    "T_BENCH_CONTAINER_AGENT_LOGS_PATH": "/agent-logs",
    "ENV_VERIFIER_LOGS_PATH": "/logs/verifier",
    "ENV_AGENT_LOGS_PATH": "/logs/agent",
    "ENV_ARTIFACTS_PATH": "/logs/artifacts",
}
_OWN_IMAGES = ("T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME", "MAIN_IMAGE_NAME")


class ComposeRefused(InvalidInput):
    """The compose file requests something that no task may have."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        self.reasons = reasons
        lines = "\n".join(f"  {reason}" for reason in reasons)
        super().__init__(f"{FILE} is refused:\n{lines}", field=FILE)


class ComposeService(Frozen):
    """One service, to be run as one container."""

    name: str
    image: str | None = None
    context: str = "."
    """Of the build, inside the environment directory."""
    dockerfile: str = "Dockerfile"
    """Inside the context."""
    build_args: dict[str, str] = {}
    target: str = ""
    command: tuple[str, ...] | None = None
    entrypoint: tuple[str, ...] | None = None
    env: dict[str, str] = {}
    workdir: str | None = None
    user: str | None = None
    hostname: str | None = None
    tmpfs: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    """Where logs or volumes would be mounted: empty directories that everybody may write to."""
    extra_hosts: tuple[str, ...] = ()
    dns: tuple[str, ...] = ()
    network_mode: str | None = None
    cpus: float | None = None
    memory_mb: int | None = None
    pids: int | None = None
    shm_mb: int | None = None
    privileged: bool = False
    """Asked for, and allowed by the operator."""


class Compose(Frozen):
    """A file that passed the rules."""

    services: tuple[str, ...]
    single: ComposeService | None = None
    """Set if the whole file is one container."""


def read_compose(environment_dir: Path, *, allow_privileged: bool = False, for_compose: bool = False) -> Compose | None:
    """``None`` without such a file. ``ComposeRefused`` with every reason at once. ``for_compose``: the file itself is
    given to compose afterwards."""
    place = environment_dir / FILE
    if not place.is_file():
        return None
    if place.stat().st_size > _SIZE_LIMIT:
        raise ComposeRefused((f"it is larger than {_SIZE_LIMIT >> 20} MB",))
    try:
        document = yaml.safe_load(place.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ComposeRefused((f"it cannot be read: {' '.join(str(error).split())}",)) from error
    rules = Rules(environment_dir, allow_privileged=allow_privileged, for_compose=for_compose)
    reasons = tuple(rules.document(document))
    services = document["services"] if not reasons else {}
    if not reasons and len(services) == 1:
        ((name, service),) = services.items()
        reasons = tuple(_cannot_collapse(str(name), service))
        if not reasons:
            return Compose(services=(str(name),), single=_Collapse(environment_dir, str(name), service).result())
    if reasons:
        raise ComposeRefused(reasons)
    return Compose(services=tuple(map(str, services)))


def _cannot_collapse(name: str, service: Mapping[str, Any]) -> list[str]:
    """What one container of a sandbox cannot do."""
    mounts = [volume(entry) for entry in service.get("volumes") or ()]
    bound = [
        mount for mount in mounts if "/" in str(mount.get("source") or "") and not log_source(str(mount["source"]))
    ]
    return [
        f"services.{name}.volumes: {mount['source']!r} cannot be mounted here; copy it in the Dockerfile"
        for mount in bound
    ]


class _Collapse:
    def __init__(self, directory: Path, name: str, service: Mapping[str, Any]) -> None:
        self._directory = directory
        self._name = name
        self._service = service

    def result(self) -> ComposeService:
        service, build = self._service, self._build()
        limits = ((service.get("deploy") or {}).get("resources") or {}).get("limits") or {}
        memory = limits.get("memory", service.get("mem_limit"))
        cpus, pids = limits.get("cpus", service.get("cpus")), limits.get("pids", service.get("pids_limit"))
        return ComposeService(
            name=self._name,
            image=None if "build" in service else self._image(),
            context=fill(str(build.get("context") or ".")),
            dockerfile=fill(str(build.get("dockerfile") or "Dockerfile")),
            build_args={name: fill(text or "") for name, text in pairs(build.get("args"))},
            target=str(build.get("target") or ""),
            command=words(service.get("command")),
            entrypoint=words(service.get("entrypoint")),
            env=self._environment(),
            workdir=self._text("working_dir"),
            user=self._text("user"),
            hostname=self._text("hostname"),
            tmpfs=_listed(service.get("tmpfs")) + self._mounted("tmpfs"),
            directories=self._mounted("volume"),
            extra_hosts=tuple(f"{host}:{address}" for host, address in _hosts(service.get("extra_hosts"))),
            dns=_listed(service.get("dns")),
            network_mode=self._text("network_mode"),
            cpus=float(fill(str(cpus))) if cpus is not None else None,
            memory_mb=max(1, size(memory) >> 20) if memory is not None else None,
            pids=int(pids) if pids is not None else None,
            shm_mb=max(1, size(service["shm_size"]) >> 20) if service.get("shm_size") else None,
            privileged=bool(service.get("privileged")),
        )

    def _build(self) -> Mapping[str, Any]:
        build = self._service.get("build") or {}
        return {"context": build} if isinstance(build, str) else build

    def _image(self) -> str | None:
        """``None`` for a name that only means the image built here."""
        image = str(self._service.get("image") or "")
        return None if any(name in image for name in _OWN_IMAGES) else fill(image) or None

    def _text(self, key: str) -> str | None:
        value = self._service.get(key)
        return None if value is None else fill(str(value))

    def _environment(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for entry in _listed(self._service.get("env_file")):
            for line in (self._directory / entry).read_text(encoding="utf-8").splitlines():
                name, equals, text = line.strip().partition("=")
                if equals and not name.startswith("#"):
                    found[name.strip()] = text.strip().strip("\"'")
        found |= {name: fill(text or "") for name, text in pairs(self._service.get("environment"))}
        return found

    def _mounted(self, kind: str) -> tuple[str, ...]:
        mounts = [volume(entry) for entry in self._service.get("volumes") or ()]
        return tuple(
            fill(str(mount["target"]))
            for mount in mounts
            if ("tmpfs" if mount.get("type") == "tmpfs" else "volume") == kind
        )


def fill(text: str) -> str:
    """The harness's variables and defaults filled in. Nothing ever comes from this machine's environment."""

    def missing(name: str, required: str | None) -> str:
        if required is not None:
            raise ComposeRefused((f"${{{name}}} has no value here {required}".rstrip(),))
        return ""

    return substitute(text, _KNOWN.get, missing)


def words(value: Any) -> tuple[str, ...] | None:
    """A command as a list, or as text that is split as a shell would."""
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(fill(str(word)) for word in value)
    return tuple(shlex.split(fill(str(value))))


def size(value: Any) -> int:
    found = bytes_of(fill(str(value)))
    if found is None:
        raise ComposeRefused((f"{value!r} is not a size",))
    return found


def _listed(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    entries = value if isinstance(value, list) else [value]
    return tuple(fill(str(entry.get("path") if isinstance(entry, dict) else entry)) for entry in entries)


def _hosts(value: Any) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [(str(host), str(address)) for host, address in value.items()]
    entries = (str(entry).replace("=", ":", 1).partition(":") for entry in value or ())
    return [(host, address) for host, _, address in entries]
