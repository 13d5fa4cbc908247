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
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, cast

from seatrial.sandboxes.host.cgroups import Cgroups
from tests.faults.trial_worker import ROOT, Setup

DISK = Path("/mnt")
"""Where each machine has its disk."""
_START_SEC = 120.0
_SHARED = ("images", "agents", "seccomp", "terminal")
"""Parts of the image cache that a machine would otherwise have to make for itself."""
_NEW = ("--net", "--pid", "--fork", "--mount", "--uts", "--mount-proc", "--kill-child")


@dataclass(frozen=True)
class Boot:
    """What a machine does after it has its disk and its network."""

    prepare: str
    worker: Sequence[str]
    environment: dict[str, str]
    ready: str
    """What the worker says when it works."""

    @classmethod
    def fake(cls, setup: Setup) -> Boot:
        """A worker without sandboxes."""
        own = replace(setup, home=str(DISK / "home"))
        worker = [sys.executable, "-m", "tests.faults.trial_worker", json.dumps(asdict(own))]
        return cls("", worker, {}, "working")

    @classmethod
    def real(cls, setup: Setup, cache: Path) -> Boot:
        """``seatrial worker`` with sandboxes of its own."""
        mounts = [f"mkdir -p {DISK}/cache/{part}; mount --bind {cache}/{part} {DISK}/cache/{part}" for part in _SHARED]
        settings = {
            "HOME": f"{DISK}/home",
            "CACHE": f"{DISK}/cache",
            "DATABASE_URL": setup.database_url,
            "BROKER_URL": setup.broker_url,
            "BLOBS_URL": setup.blobs_url,
            "LEASE_SEC": str(setup.lease_sec),
            "HEARTBEAT_SEC": str(setup.heartbeat_sec),
            "REAP_SEC": str(setup.reap_sec),
            "DISK_LOW_WATER_MB": "0",
            "IMAGE_LOW_WATER_GB": "0",
        }
        environment = {f"SEATRIAL_{name}": value for name, value in settings.items()}
        worker = [sys.executable, "-m", "seatrial", "worker", "-n", str(setup.capacity)]
        return cls("\n".join(mounts), worker, environment, "Worker ready")


@dataclass(frozen=True)
class Machine:
    number: int
    boot: Boot
    outside: subprocess.Popen[bytes]
    """``unshare``, which is in the machine's network. The machine's first process is its child."""
    log: Path

    @classmethod
    def start(cls, number: int, boot: Boot, place: Path, address: str) -> Machine:
        """Boots it and connects it; its worker begins to work by itself. ``address`` with the length of its network."""
        log = place / f"machine-{number}.log"
        script = f"""set -e
            mount -t tmpfs -o size=1g tmpfs {DISK}
            mkdir {DISK}/home
            {boot.prepare}
            hostname machine-{number}
            ip link set lo up
            read connected
            exec {shlex.join(boot.worker)} </dev/null"""
        with log.open("wb") as output:
            outside = subprocess.Popen(
                ["unshare", *_NEW, "sh", "-c", script],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **boot.environment},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
            )
        machine = cls(number, boot, outside, log)
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
        while self.boot.ready not in self.log.read_text():
            assert self.alive and time.monotonic() < deadline, self.log.read_text()[-3000:]
            time.sleep(0.05)

    def unplug(self) -> None:
        _ip("link", "set", self.cable, "down")

    def plug(self) -> None:
        _ip("link", "set", self.cable, "up")

    def kill(self) -> None:
        """``unshare`` takes the first process along, and the kernel all others of the machine. A real machine's kernel
        would go too; this one still has the cgroups of its sandboxes."""
        if self.alive:
            sandboxes = self.sandboxes
            self.outside.kill()
            self.outside.wait(60)
            cast(IO[bytes], self.outside.stdin).close()
            for sandbox in sandboxes:
                assert Cgroups.found().of(sandbox).remove(60), f"{sandbox} has processes"

    @property
    def sandboxes(self) -> list[str]:
        """Those that are in use on it."""
        return [place.parent.name for place in self._disk.glob("cache/run/st-*/sandbox.json")]

    def leftovers(self) -> list[str]:
        """Folders of tries and sandboxes on its disk, seen from outside."""
        return [str(found) for pattern in ("home/work/*/*-*", "cache/run/st-*") for found in self._disk.glob(pattern)]

    @property
    def _disk(self) -> Path:
        first = Path(f"/proc/{self.outside.pid}/task/{self.outside.pid}/children").read_text().split()
        return Path(f"/proc/{first[0]}/root{DISK}") if first else Path("/nowhere")

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
