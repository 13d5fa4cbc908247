"""Podman's service for the tests: started here on a socket of its own, stopped by its process id.

The ``podman_engine`` fixture of ``tests/integration/engine`` uses it. Everything Podman keeps is below one directory,
so that a Podman that this machine has of its own is neither seen nor changed.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.engine import Engine, answers, spawn, stop_engine
from tests.waiting import LIMIT_SEC

INSTALL = "Run: scripts/system-packages.sh test"
_MANY = 1 << 20
_CONFIGURATION = """[containers]
default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "crun"
"""


@contextmanager
def podman_service(directory: Path) -> Iterator[Engine]:
    """Podman's engine API, from its start to its end."""
    podman = shutil.which("podman")
    if podman is None:
        raise RuntimeError(f"podman is not installed. {INSTALL}")
    directory.mkdir(parents=True)
    places = {name: directory / name for name in ("root", "tmpdir", "network-config-dir")}
    places["runroot"] = Path(tempfile.mkdtemp(prefix="podman-"))  # at most 50 characters, says Podman
    host = f"unix://{directory}/podman.sock"
    # From a directory of its own: the monitors of its containers leave files wherever it was started.
    begun = ["/usr/bin/env", f"--chdir={directory}", podman]
    service = [*begun, *(f"--{name}={place}" for name, place in places.items()), "system", "service", "--time=0", host]
    engine = Engine(host, spawn(_alone(service), directory / "service.log", _environment(directory)), directory)
    try:
        _await_answer(engine)
        yield engine
    finally:
        stop_engine(engine)
        _end_monitors(directory)
        shutil.rmtree(places["runroot"], ignore_errors=True)


def _environment(directory: Path) -> dict[str, str]:
    """Podman gives containers limits of its own choice, which a machine that is a container itself may refuse."""
    threads = int(Path("/proc/sys/kernel/pid_max").read_text())
    allowed = {"files": _hard(resource.RLIMIT_NOFILE), "processes": min(_hard(resource.RLIMIT_NPROC), threads)}
    configuration = directory / "containers.conf"
    configuration.write_text(_CONFIGURATION.format(**allowed))
    scratch = directory / "scratch"  # images that it is sent stay where it puts them at first
    scratch.mkdir()
    return {**os.environ, "CONTAINERS_CONF": str(configuration), "TMPDIR": str(scratch)}


def _hard(number: int) -> int:
    limit = resource.getrlimit(number)[1]
    return _MANY if limit == resource.RLIM_INFINITY else min(limit, _MANY)


def _alone(command: list[str]) -> list[str]:
    """Out of sight of the second cgroup version where both are there: crun 1.8 refuses to start when it sees them."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    if not any(kind == "cgroup" for _, _, kind, *_ in mounts):
        return command
    hidden = [f"umount {place} && " for _, place, kind, *_ in mounts if kind == "cgroup2"]
    return ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", "".join([*hidden, 'exec "$@"']), "sh", *command]


def _end_monitors(directory: Path) -> None:
    """Each command has a monitor that stays for minutes and then has Podman tidy up, in a directory that is gone."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (place / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"/conmon") and any(os.fsencode(directory) in word for word in words):
                os.kill(int(place.name), signal.SIGKILL)


def _await_answer(engine: Engine) -> None:
    assert engine.pid is not None and engine.directory is not None
    deadline = time.monotonic() + LIMIT_SEC
    while not answers(engine.host):
        if os.waitpid(engine.pid, os.WNOHANG)[0] or time.monotonic() > deadline:
            raise RuntimeError(f"podman did not start:\n{(engine.directory / 'service.log').read_text()[-2000:]}")
        time.sleep(0.1)
