"""A container engine for the tests: one that answers already, or one started here and stopped by its process id.

However many processes a test run has (pytest-xdist), one engine serves all of them: the first to come starts it, the
last to leave stops it. The ``container_engine`` fixture of the sandbox suite and the fault tests use this.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

INSTALL = "Run: scripts/install-engine.sh"
_START_SEC = 180.0
_STOP_SEC = 30.0


@dataclass(frozen=True)
class Engine:
    """Where an engine listens, and its process if it is ours to stop."""

    host: str
    pid: int | None = None
    directory: Path | None = None

    @property
    def socket_path(self) -> str:
        return self.host.removeprefix("unix://")


def answers(host: str) -> bool:
    """Whether something on that socket speaks the Engine API."""
    if not host.startswith("unix://"):
        return bool(host)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(30)  # one that is not there refuses at once
            connection.connect(host.removeprefix("unix://"))
            connection.sendall(b"GET /_ping HTTP/1.0\r\nHost: engine\r\n\r\n")
            return b" 200 " in connection.recv(256).split(b"\r\n", 1)[0]
    except OSError:
        return False


def existing_engine() -> Engine | None:
    for host in (os.environ.get("DOCKER_HOST", ""), "unix:///var/run/docker.sock"):
        if host and answers(host):
            return Engine(host)
    return None


def start_engine(directory: Path, *, apart: bool = False) -> Engine:
    """Starts ``dockerd`` with everything it writes below ``directory``.

    ``apart`` gives it a network namespace of its own, so that it cannot meet another engine's bridge or rules."""
    program = shutil.which("dockerd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        raise RuntimeError(f"dockerd is not installed. {INSTALL}")
    if os.geteuid() != 0:
        raise RuntimeError("Starting a container engine needs root.")
    directory.mkdir(parents=True, exist_ok=True)
    if not apart:
        # An engine that finds forwarding off switches it on and drops what others forward: not on our account.
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    host = f"unix://{directory}/engine.sock"
    command = [
        *(("/usr/bin/unshare", "--net") if apart else ()),
        program,
        f"--data-root={directory}/data",
        f"--exec-root={directory}/run",
        f"--pidfile={directory}/engine.pid",
        f"--host={host}",
    ]
    pid = spawn(command, directory / "engine.log", dict(os.environ))
    deadline = time.monotonic() + _START_SEC
    while not answers(host):
        if os.waitpid(pid, os.WNOHANG)[0] or time.monotonic() > deadline:
            tail = (directory / "engine.log").read_text(errors="replace")[-2000:]
            raise RuntimeError(f"dockerd did not start:\n{tail}")
        time.sleep(0.1)
    return Engine(host, pid, directory)


def spawn(command: list[str], log: Path, environment: dict[str, str]) -> int:
    """A process that outlives the test that started it, in a session of its own."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    actions = [(os.POSIX_SPAWN_DUP2, source, target) for source, target in ((nothing, 0), (output, 1), (output, 2))]
    try:
        return os.posix_spawn(command[0], command, environment, file_actions=actions, setsid=True)
    finally:
        os.close(output)
        os.close(nothing)


def kill_engine(engine: Engine) -> None:
    """Ends the engine as a crash would; its containers keep running."""
    assert engine.pid is not None
    os.kill(engine.pid, signal.SIGKILL)
    _wait_for_end(engine.pid)
    assert engine.directory is not None
    # Its containerd dies with it. Where nobody reaps that, the next engine would take the corpse for a living one.
    for name in ("engine.pid", "run/containerd/containerd.pid"):
        (engine.directory / name).unlink(missing_ok=True)


def stop_engine(engine: Engine) -> None:
    """Ends an engine that ``start_engine`` gave, with its containers and its data."""
    assert engine.pid is not None and engine.directory is not None
    if answers(engine.host):
        _docker(engine, "container", "prune", "--force")
        running = _docker(engine, "ps", "--all", "--quiet").split()
        if running:
            _docker(engine, "rm", "--force", "--volumes", *running)
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(engine.pid, sign)
        except ProcessLookupError:
            break
        if _wait_for_end(engine.pid):
            break
    for mount in _mounts_below(engine.directory):
        subprocess.run(["umount", "--lazy", mount], capture_output=True, check=False)
    shutil.rmtree(engine.directory, ignore_errors=True)


@contextmanager
def shared_engine(directory: Path) -> Iterator[Engine]:
    """The engine of a whole test run; ``directory`` is the same for all of its processes."""
    found = existing_engine()
    if found is not None:
        yield found
        return
    directory.mkdir(parents=True, exist_ok=True)
    state = directory / "users.json"
    with _locked(directory):
        record = json.loads(state.read_text()) if state.exists() else None
        if record is None:
            started = start_engine(directory / "engine")
            record = {"pid": started.pid, "host": started.host, "users": 0}
        record["users"] += 1
        state.write_text(json.dumps(record))
    engine = Engine(record["host"], record["pid"], directory / "engine")
    try:
        yield engine
    finally:
        with _locked(directory):
            record = json.loads(state.read_text())
            record["users"] -= 1
            state.write_text(json.dumps(record))
            if record["users"] == 0:
                stop_engine(engine)
                state.unlink()


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _wait_for_end(pid: int) -> bool:
    deadline = time.monotonic() + _STOP_SEC
    while time.monotonic() < deadline:
        try:
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                return True
        except ChildProcessError:
            # Another process of the test run started it, so it is not ours to wait for.
            if _is_dead(pid):
                return True
        time.sleep(0.05)
    return False


def _is_dead(pid: int) -> bool:
    """A zombie is dead: who started it may not look for it before the test run ends."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # it went before, or while it was read
        return True


def _mounts_below(directory: Path) -> list[str]:
    """Deepest first. An engine mounts its data upon itself and leaves it so."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return sorted((point for point in points if Path(point).is_relative_to(directory)), key=len, reverse=True)


def _docker(engine: Engine, *arguments: str) -> str:
    done = subprocess.run(["docker", "--host", engine.host, *arguments], capture_output=True, text=True, check=False)
    return done.stdout
