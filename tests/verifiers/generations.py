"""Both generations of verifiers, each in a virtual environment of its own, and their ``vf-eval`` as a person runs it.

The environments are installed from the package index and kept between test runs as long as nobody asks for others.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.sandboxes.record import SandboxRecord
from tests.command_line import ROOT

PACKAGE = ROOT / "environments" / "terminalbench"
UV = Path(sys.executable).with_name("uv")
VERSIONS = {"v03": "0.3.1", "v04": "0.4.0"}
_LONGEST_SEC = 540.0


def virtual_environment(extra: str) -> Path:
    """Made by whoever comes first; others wait. Other requirements make it anew."""
    home = Path(os.environ.get("SEATRIAL_TEST_VENVS", "/var/tmp/seatrial-test-venvs"))
    home.mkdir(parents=True, exist_ok=True)
    place = home / f"{extra}-{_digest(str(ROOT))}"
    wanted = _digest(VERSIONS[extra], sys.version, _metadata(ROOT), _metadata(PACKAGE))
    with (home / f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = place / "complete"
        if not stamp.exists() or stamp.read_text() != wanted:
            shutil.rmtree(place, ignore_errors=True)
            _install(place, extra)
            stamp.write_text(wanted)
    return place


def _metadata(project: Path) -> str:
    """All that decides how a package is installed whose source stays in place: not what its linters are told."""
    told = tomllib.loads((project / "pyproject.toml").read_text())
    return json.dumps([told["build-system"], told["project"], told["tool"]["hatch"]], sort_keys=True)


def _digest(*words: str) -> str:
    return hashlib.sha256(chr(0).join(words).encode()).hexdigest()[:16]


def _install(place: Path, extra: str) -> None:
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, place], check=True)
    wanted = ["-e", str(ROOT), "-e", f"{PACKAGE}[{extra}]", f"verifiers=={VERSIONS[extra]}"]
    subprocess.run([UV, "pip", "install", "--quiet", "--python", place / "bin" / "python", *wanted], check=True)


@dataclass(frozen=True)
class Evaluation:
    """One ``vf-eval`` of one generation, in a folder of its own."""

    environment: Path
    folder: Path
    cache: Path
    models: str
    """Address of the scripted model server."""
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, arguments: Sequence[str | Path], **variables: str) -> subprocess.Popen[bytes]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{uuid.uuid4().hex[:6]}.log").open("wb") as log:
            process = subprocess.Popen(
                [self.environment / "bin" / "vf-eval", *map(str, arguments)],
                cwd=self.folder,
                env=self._variables(variables),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def run(self, arguments: Sequence[str | Path], **variables: str) -> None:
        process = self.start(arguments, **variables)
        assert process.wait(_LONGEST_SEC) == 0, self.logs

    def python(self, program: str) -> Any:
        """What a program of this generation's Python prints last, which is JSON."""
        command = [self.environment / "bin" / "python", "-c", program]
        told = subprocess.run(
            command, cwd=self.folder, env=self._variables({}), capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stderr[-3000:]
        return json.loads(told.stdout.splitlines()[-1])

    @property
    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-6000:] for path in sorted(self.folder.glob("*.log")))

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Every line of the result files of this name."""
        found = sorted(self.folder.rglob(name))
        assert found, self.logs
        return [json.loads(line) for path in found for line in path.read_text().splitlines()]

    def end(self) -> None:
        for process in self.started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _variables(self, changes: dict[str, str]) -> dict[str, str]:
        strange = re.compile(r"SEATRIAL_.*|.*_(API_KEY|BASE_URL|API_BASE)|PYTHONDONTWRITEBYTECODE|TB_TASKS_DIR")
        kept = {name: value for name, value in os.environ.items() if not strange.fullmatch(name)}
        return {
            **kept,
            "PATH": f"{UV.parent}:{kept.get('PATH', '')}",
            "SEATRIAL_HOME": str(self.folder / "home"),
            "SEATRIAL_CACHE": str(self.cache),
            "OPENROUTER_API_KEY": "scripted",
            "COLUMNS": "200",
            **changes,
        }


def sandboxes_of_rollouts(cache: Path, owner: int | None = None) -> set[str]:
    """Those on record that belong to this process, to the process ``owner``, or to one of its session."""
    run, owner = cache / "run", owner or os.getpid()
    records = [SandboxRecord.read(place) for place in run.iterdir()] if run.is_dir() else []
    return {
        record.sandbox
        for record in records
        if record and record.owner.install.startswith("rollouts-") and owner in (record.process.pid, _session(record))
    }


def _session(record: SandboxRecord) -> int | None:
    try:
        return os.getsid(record.process.pid)
    except ProcessLookupError:
        return None
