"""A machine of its own, as far as the kernel can make one: network, processes, mounts and host name are its own.

Its disk is a memory file system that nobody else sees, and is gone with it. A cable to the hub of ``site.py`` is its
only way to others. ``kill`` ends every process at once, as a power cut does; ``unplug`` and ``plug`` are the cable.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, cast

from tests.faults.trial_worker import ROOT, Setup

DISK = Path("/mnt")
"""Where each machine has its disk."""
_START_SEC = 120.0
_NEW = ("--net", "--pid", "--fork", "--mount", "--uts", "--mount-proc", "--kill-child")


@dataclass(frozen=True)
class Machine:
    number: int
    outside: subprocess.Popen[bytes]
    """``unshare``, which is in the machine's network. The machine's first process is its child."""
    log: Path

    @classmethod
    def start(cls, number: int, setup: Setup, place: Path, address: str) -> Machine:
        """Boots it and connects it; its worker begins to work by itself. ``address`` with the length of its network."""
        log = place / f"machine-{number}.log"
        own = replace(setup, home=str(DISK / "home"))
        worker = [sys.executable, "-m", "tests.faults.trial_worker", json.dumps(asdict(own))]
        boot = f"""set -e
            mount -t tmpfs -o size=256m tmpfs {DISK}
            mkdir {DISK}/home
            hostname machine-{number}
            ip link set lo up
            read connected
            exec {shlex.join(worker)} </dev/null"""
        with log.open("wb") as output:
            outside = subprocess.Popen(
                ["unshare", *_NEW, "sh", "-c", boot],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
            )
        machine = cls(number, outside, log)
        machine._connect(address)
        return machine

    @property
    def name(self) -> str:
        """How the names of its workers begin."""
        return f"machine-{self.number}:"

    @property
    def cable(self) -> str:
        return f"cable{self.number}"

    @property
    def alive(self) -> bool:
        return self.outside.poll() is None

    def until_works(self) -> None:
        deadline = time.monotonic() + _START_SEC
        while "working" not in self.log.read_text():
            assert self.alive and time.monotonic() < deadline, self.log.read_text()[-3000:]
            time.sleep(0.05)

    def unplug(self) -> None:
        _ip("link", "set", self.cable, "down")

    def plug(self) -> None:
        _ip("link", "set", self.cable, "up")

    def kill(self) -> None:
        """``unshare`` takes the first process along, and the kernel all others of the machine."""
        if self.alive:
            self.outside.kill()
            self.outside.wait(60)
            cast(IO[bytes], self.outside.stdin).close()

    def leftovers(self) -> list[str]:
        """Folders of tries on its disk that nobody works in, seen from outside."""
        [first] = Path(f"/proc/{self.outside.pid}/task/{self.outside.pid}/children").read_text().split()
        disk = Path(f"/proc/{first}/root{DISK}")
        return [str(found) for found in disk.glob("home/work/*/*-*")]

    def _connect(self, address: str) -> None:
        """The cable's far end is in the hub, the near end is the machine's ``eth0``."""
        here, pid = os.stat("/proc/self/ns/net").st_ino, self.outside.pid
        deadline = time.monotonic() + _START_SEC
        while os.stat(f"/proc/{pid}/ns/net").st_ino == here:
            assert time.monotonic() < deadline, "no network of its own"
            time.sleep(0.01)
        _ip("link", "add", self.cable, "master", "hub", "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        _ip("link", "set", self.cable, "up")
        inside = ["nsenter", "--net", "--target", str(pid), "ip"]
        subprocess.run([*inside, "addr", "add", address, "dev", "eth0"], check=True)
        subprocess.run([*inside, "link", "set", "eth0", "up"], check=True)
        to_machine = cast(IO[bytes], self.outside.stdin)
        to_machine.write(b"connected\n")
        to_machine.flush()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
