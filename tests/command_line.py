"""The installed ``seatrial`` command as a person uses it: in a process of its own, with a home of its own.

The ``cli`` fixture of ``tests/conftest.py`` hands it out. Processes that a test started and did not end are ended here.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import asyncpg

from seatrial.sandboxes.record import SandboxRecord
from tests.waiting import until
from tests.warm_start import Forked

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "samples"

_PROGRAM = Path(sys.executable).with_name("seatrial")
_LONGEST_SEC = 240.0


def image_cache_dir() -> Path:
    """Images stay between runs: making a Debian takes half a minute."""
    named = os.environ.get("SEATRIAL_CACHE") or os.environ.get("SEATRIAL_TEST_CACHE")
    return Path(named or "/var/tmp/seatrial-test-cache")


@dataclass(frozen=True)
class Done:
    """One ended command."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        """Standard output, which must be one JSON document and nothing else."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Running:
    """A started command. Its output goes to files, so that it never waits for somebody to read."""

    process: subprocess.Popen[bytes] | Forked
    out: Path
    err: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait(self, seconds: float = _LONGEST_SEC) -> Done:
        return Done(self.process.wait(seconds), self.out.read_text(), self.err.read_text())

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()


@dataclass(frozen=True)
class CommandLine:
    home: Path
    cache: Path
    directory: Path
    program: Path = _PROGRAM
    environment: dict[str, str] = field(default_factory=dict)
    started: list[Running] = field(default_factory=list)

    def __call__(self, *arguments: str | Path, status: int = 0, **environment: str) -> Done:
        """Runs it to its end and insists on the exit status."""
        ended = self._run(*arguments, **environment)
        assert ended.status == status, f"seatrial {arguments}: {ended.status}\n{ended.out}\n{ended.err}"
        assert "Traceback" not in ended.err, ended.err
        return ended

    def json(self, *arguments: str | Path, status: int = 0, **environment: str) -> Any:
        return self(*arguments, "--json", status=status, **environment).json()

    def each(self, commands: Sequence[Sequence[str | Path]]) -> list[Done]:
        """Many short commands, some at the same time."""
        with ThreadPoolExecutor(4) as threads:
            return list(threads.map(lambda arguments: self._run(*arguments), commands))

    def _run(self, *arguments: str | Path, **environment: str) -> Done:
        if self.program != _PROGRAM:  # one that is installed elsewhere cannot be loaded here
            return self.start(*arguments, **environment).wait()
        return self.fork(*arguments, **environment).wait()

    def fork(self, *arguments: str | Path, **environment: str) -> Running:
        """In the background, at once."""
        out, err = self._output_files()
        process = Forked(list(map(str, arguments)), self.directory, self._environment(environment), out, err)
        return self._begun(Running(process, out, err))

    def start(self, *arguments: str | Path, **environment: str) -> Running:
        """In the background, in a Python of its own."""
        out, err = self._output_files()
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                [self.program, *map(str, arguments)],
                cwd=self.directory,
                env=self._environment(environment),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
            )
        return self._begun(Running(process, out, err))

    def _begun(self, running: Running) -> Running:
        self.started.append(running)
        return running

    def _output_files(self) -> tuple[Path, Path]:
        stem = uuid.uuid4().hex
        out, err = self.directory / f"{stem}.out", self.directory / f"{stem}.err"
        for path in (out, err):
            path.touch()
        return out, err

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """What the store holds, read beside whoever writes to it; nothing as long as there is none."""
        if url := self.environment.get("SEATRIAL_DATABASE_URL"):
            return asyncio.run(_rows_of(url, query, values))
        if not (self.home / "seatrial.db").exists():
            return []
        with closing(sqlite3.connect(f"file:{self.home}/seatrial.db?mode=ro", uri=True, timeout=30)) as store:
            return store.execute(query, values).fetchall()

    def count(self, **wanted: str) -> int:
        """Trials whose columns have these values."""
        if not self._has_tables:
            return 0
        condition = " AND ".join(f"CAST({column} AS TEXT) = ?" for column in wanted) or "1 = 1"
        return int(self.rows(f"SELECT count(*) FROM trials WHERE {condition}", *wanted.values())[0][0])

    @property
    def _has_tables(self) -> bool:
        on_server = "SEATRIAL_DATABASE_URL" in self.environment
        catalogue = "pg_tables WHERE tablename" if on_server else "sqlite_master WHERE name"
        return bool(self.rows(f"SELECT 1 FROM {catalogue} = 'trials'"))

    def until_heartbeats(self, pid: int | None = None) -> None:
        """Waits for three more heartbeats of a worker: meanwhile it has looked for work, and after its leases."""
        moments: set[str] = set()

        def seen() -> int:
            rows = self.rows("SELECT seen_at, document FROM workers")
            moments.update(str(at) for at, document in rows if pid in (None, json.loads(document)["pid"]))
            return len(moments)

        until(lambda: seen() > 3, "heartbeats")

    def sandboxes(self) -> set[str]:
        """The sandboxes of this home that are on record."""
        [(install,)] = self.rows("SELECT value FROM meta WHERE key = 'install_id'")
        run = self.cache / "run"
        records = [SandboxRecord.read(place) for place in run.iterdir()] if run.is_dir() else []
        return {record.sandbox for record in records if record is not None and record.owner.install == install}

    def _environment(self, changes: dict[str, str]) -> dict[str, str]:
        """Ours, without what would change how the command behaves: no settings, no provider's keys.

        Python keeps its bytecode, as it does for a person: without, every command compiles its libraries anew."""
        strange = re.compile(r"SEATRIAL_.*|.*_(API_KEY|BASE_URL|API_BASE)|PYTHONDONTWRITEBYTECODE")
        kept = {name: value for name, value in os.environ.items() if not strange.fullmatch(name)}
        ours = {"SEATRIAL_HOME": str(self.home), "SEATRIAL_CACHE": str(self.cache), "COLUMNS": "160"}
        return {**kept, **ours, **self.environment, **changes}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for running in self.started:
            running.end()


async def _rows_of(url: str, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
    """Of PostgreSQL, which numbers its places for values."""
    words = query.split("?")
    numbered = words[0] + "".join(f"${number}{word}" for number, word in enumerate(words[1:], 1))
    connection = await asyncpg.connect(url.replace("postgresql+asyncpg", "postgresql"))
    try:
        return [tuple(row) for row in await connection.fetch(numbered, *values)]
    finally:
        await connection.close()


def traces(cache: Path, sandboxes: set[str]) -> list[str]:
    """What is left of these sandboxes on this machine: folders, mounts, cgroups, processes."""
    found = [str(cache / "run" / name) for name in sandboxes if (cache / "run" / name).exists()]
    found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if _mentions(line, sandboxes)]
    for folder, _, _ in os.walk("/sys/fs/cgroup"):
        found += [folder] if Path(folder).name in sandboxes or _mentions(Path(folder).name, sandboxes) else []
    for place in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if _mentions(place.read_bytes().decode(errors="replace"), sandboxes):
                found.append(str(place))
    return found


def _mentions(text: str, names: set[str]) -> bool:
    return any(name in text for name in names)
