"""The ``seatrial`` command without the second that loading it takes: forked from a process that has it loaded.

``CommandLine`` runs commands this way that come to an end by themselves, and workers by the dozen. It is the same entry
point in a process of its own, with its own environment, folder and output. Whatever is about starting is started as a
person would start it.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerContext
from pathlib import Path

_PROGRAM = ("seatrial.cli.main", "seatrial.cli.backend.local", "seatrial.cli.backend.remote", "seatrial.worker")
_RUNNER = ("harbor.trial.trial", "seatrial.adapters.runner_harbor.runner", "seatrial.sandboxes.oci.environment")

_BOOKKEEPING = threading.Lock()
"""Starting a process looks after all others too, and whoever looks first takes an exit status away from the other."""


class Forked:
    """As much of ``subprocess.Popen`` as tests need."""

    def __init__(
        self, arguments: Sequence[str], directory: Path, environment: Mapping[str, str], out: Path, err: Path
    ) -> None:
        self.args = ["seatrial", *arguments]
        self._process = _loaded().Process(target=_become, args=(self.args, directory, dict(environment), out, err))
        with _BOOKKEEPING:
            self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        with _BOOKKEEPING:
            return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if not wait([self._process.sentinel], timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        status = self.returncode
        assert status is not None
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _loaded() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *_PROGRAM, *_RUNNER])  # loaded once, when the first command starts
    return context


def _become(arguments: list[str], directory: Path, environment: dict[str, str], out: Path, err: Path) -> None:
    from seatrial.cli.main import main  # loaded already; here, so that a test can take this module in for nothing

    for path, number in ((out, 1), (err, 2)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    try:
        main()
    finally:
        atexit._run_exitfuncs()  # a process that multiprocessing began ends without
