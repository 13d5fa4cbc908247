"""A private PostgreSQL server in a temporary directory, for tests. Needs the server's programs on this machine.

It listens on a Unix socket, and on an address if one is given. It dies with the process that started it, and does not
flush to disk.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

import asyncpg

from seatrial.errors import SetupProblem
from seatrial.system.removal import remove_tree

_START_SEC = 180.0


class PostgresServer:
    """``with PostgresServer() as server``; then ``await server.create_database("one")`` gives a URL."""

    def __init__(self, max_connections: int = 200, address: str = "", shared: bool = False) -> None:
        """``address`` is one of this machine; everybody in its network may use the server, at the usual port.
        ``shared`` lets other accounts of this machine use it, as the API's process of a service is."""
        self._max_connections = max_connections
        self._address = address
        self._mode = 0o711 if shared else 0o700
        self._programs = _find_programs()
        self._user = _unprivileged_user()
        self.directory = Path(tempfile.mkdtemp(prefix="seatrial-pg-"))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            if self._user is not None:
                os.chown(self.directory, self._user.pw_uid, self._user.pw_gid)
            self.directory.chmod(self._mode)
            self._initialise()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        remove_tree(self.directory)

    def start(self) -> None:
        options = {
            "listen_addresses": self._address,
            "unix_socket_directories": str(self.directory),
            "fsync": "off",
            "max_connections": str(self._max_connections),
            "shared_buffers": "16MB",
            "max_wal_size": "256MB",
            "autovacuum": "off",
        }
        flags = [flag for name, value in options.items() for flag in ("-c", f"{name}={value}")]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._as_user(), self._programs / "postgres", "-D", self.directory / "data", *flags],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.directory,
            )
        self._wait_until_ready()

    def stop(self) -> None:
        """Drops connections, rolls back transactions, keeps the data."""
        self._end(signal.SIGINT)

    def stop_hard(self) -> None:
        """Simulates a crash: no checkpoint; the next start recovers from the log."""
        self._end(signal.SIGQUIT)

    def pause(self) -> None:
        """Keeps its connections but answers nothing, like a server behind a broken network."""
        self._send_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._send_all(signal.SIGCONT)

    @property
    def programs(self) -> Path:
        """Folder of the server's own ``pg_dump`` and ``pg_restore``."""
        return self._programs

    def url(self, database: str) -> str:
        if self._address:
            return f"postgresql+asyncpg://postgres@{self._address}/{database}"
        return f"postgresql+asyncpg://postgres@/{database}?host={self.directory}"

    async def create_database(self, name: str, template: str = "template1") -> str:
        connection = await asyncpg.connect(host=str(self.directory), user="postgres", database="postgres")
        try:
            await connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        finally:
            await connection.close()
        return self.url(name)

    def _initialise(self) -> None:
        command: list[str | Path] = [*self._as_user(), self._programs / "initdb", "-D", self.directory / "data"]
        command += ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        subprocess.run(command, check=True, cwd=self.directory, capture_output=True)
        with (self.directory / "data" / "pg_hba.conf").open("a") as access:
            access.write("host all all samenet trust\n")

    def _as_user(self) -> list[str | Path]:
        """The server refuses to run as root, and must end with this process."""
        command: list[str | Path] = ["setpriv", "--pdeathsig=INT"]
        if self._user is not None:
            command += [f"--reuid={self._user.pw_uid}", f"--regid={self._user.pw_gid}", "--clear-groups"]
        return command

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SEC
        probe: list[str | Path] = [self._programs / "pg_isready", "-q", "-h", self.directory]
        while subprocess.run(probe, check=False, cwd=self.directory).returncode != 0:
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise SetupProblem(f"PostgreSQL did not start:\n{(self.directory / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def _send_all(self, number: signal.Signals) -> None:
        assert self._process is not None
        pid = self._process.pid
        for process in (pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())):
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._send_all(signal.SIGCONT)
            self._process.send_signal(how)
            self._process.wait(_START_SEC)
        self._process = None


def _find_programs() -> Path:
    """Debian installs them per version, outside of PATH."""
    found = shutil.which("initdb")
    candidates = [Path(found).resolve().parent] if found else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name, reverse=True)
    for directory in candidates:
        if all((directory / program).exists() for program in ("initdb", "postgres", "pg_isready")):
            return directory
    raise SetupProblem("There is no PostgreSQL server on this machine.", fix="apt-get install postgresql")


def _unprivileged_user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]
