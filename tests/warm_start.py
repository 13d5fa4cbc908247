"""The ``seatrial`` command without the second that loading it takes: forked from a process that has it loaded.

``CommandLine`` runs commands this way that come to an end by themselves, of which a test run has hundreds. It is the
same entry point in a process of its own, with its own environment, folder and output. What runs in the background, gets
signals or is installed elsewhere is started as a person would start it.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerContext
from pathlib import Path

_PROGRAM = ("seatrial.cli.main", "seatrial.cli.local_desk", "seatrial.cli.remote_desk", "seatrial.wiring")
_RUNNER = ("harbor.trial.trial", "seatrial.adapters.runner_harbor.runner", "seatrial.sandboxes.oci")

_BOOKKEEPING = threading.Lock()
"""Starting a process looks after all others too, and whoever looks first takes an exit status away from the other."""


def run_to_end(
    arguments: Sequence[str], directory: Path, environment: Mapping[str, str], out: Path, err: Path, seconds: float
) -> int:
    """Its exit status. One that takes longer than ``seconds`` is killed, which is a failure."""
    process = _loaded().Process(target=_become, args=(arguments, directory, dict(environment), out, err))
    with _BOOKKEEPING:
        process.start()
    ended = wait([process.sentinel], seconds)
    with _BOOKKEEPING:
        process.kill()
        process.join()
        status = process.exitcode
    assert ended, f"seatrial {arguments} did not end within {seconds:g} s"
    assert status is not None
    return status


def _loaded() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *_PROGRAM, *_RUNNER])  # loaded once, when the first command starts
    return context


def _become(arguments: Sequence[str], directory: Path, environment: dict[str, str], out: Path, err: Path) -> None:
    from seatrial.cli.main import main  # loaded already; here, so that a test can take this module in for nothing

    for path, number in ((out, 1), (err, 2)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["seatrial", *arguments]
    try:
        main()
    finally:
        atexit._run_exitfuncs()  # a process that multiprocessing began ends without
