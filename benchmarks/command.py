"""``seatrial run`` as a process of its own, watched while it runs: memory, living sandboxes, and what it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.place import Place
from seatrial.sandboxes.host.cgroups import PARENT_GROUP
from seatrial.sandboxes.oci.container_spec import MARK
from seatrial.sandboxes.record import SandboxRecord

_LOOK_EVERY_SEC = 0.5


@dataclass(frozen=True, slots=True)
class Watched:
    """What was seen of one run."""

    summary: dict[str, Any]
    most_alive: int
    peak_bytes: int
    leftovers: tuple[str, ...]
    seconds: float


def run_job(place: Place, task: Path, trials: int, path: Path | None = None) -> Watched:
    """All trials at once, on ``oci``, in a home of its own."""
    home = place.folder("home")
    environ = {**os.environ, "SEATRIAL_HOME": str(home), "SEATRIAL_CACHE": str(place.cache)}
    if path is not None:
        environ["PATH"] = f"{path}:{environ.get('PATH', os.defpath)}"
    program = Path(sys.executable).parent / "seatrial"
    arguments = ["run", str(task), "-k", str(trials), "-n", str(trials), "-e", "oci", "--json"]
    started = time.perf_counter()
    with (home / "out").open("w") as out, (home / "err").open("w") as err:
        process = subprocess.Popen([program, *arguments], env=environ, stdout=out, stderr=err)
    watch = _Watch(place.cache / "run", process.pid)
    while process.poll() is None:
        watch.look()
        time.sleep(_LOOK_EVERY_SEC)
    seconds = time.perf_counter() - started
    if process.returncode not in (0, 3):
        raise RuntimeError(f"seatrial run ended with {process.returncode}: {(home / 'err').read_text()[-2000:]}")
    return Watched(
        summary=json.loads((home / "out").read_text()),
        most_alive=watch.most_alive,
        peak_bytes=watch.peak_bytes,
        leftovers=tuple(watch.leftovers()),
        seconds=seconds,
    )


class _Watch:
    """Looks at the records and the first processes of the sandboxes that one process holds."""

    def __init__(self, run_dir: Path, pid: int) -> None:
        self._run_dir = run_dir
        self._pid = pid
        self._ours: dict[str, bool] = {}
        self.most_alive = 0
        self.peak_bytes = 0

    def look(self) -> None:
        self.most_alive = max(self.most_alive, sum(map(self._lives, self._sandboxes())))
        self.peak_bytes = max(self.peak_bytes, _resident_bytes(self._pid))

    def leftovers(self) -> Iterator[str]:
        """What is still on the machine of any sandbox that was seen, and of the process's network."""
        yield from (f"directory {name}" for name in self._sandboxes())
        seen = {name for name, ours in self._ours.items() if ours}
        for place in Path("/sys/fs/cgroup").glob(f"**/{PARENT_GROUP}/*"):
            if place.name in seen:
                yield f"cgroup {place}"
        mounts = Path("/proc/self/mountinfo").read_text()
        yield from (f"mount of {name}" for name in seen if name in mounts)
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and _mark_of(entry) in seen:
                yield f"process {entry.name} of {_mark_of(entry)}"
        stamp = f"_p{self._pid}_"
        for listing in (["ip", "-o", "link"], ["nft", "list", "tables"], ["ip", "netns", "list"]):
            shown = subprocess.run(listing, capture_output=True, text=True, check=False).stdout
            yield from (f"{listing[0]}: {line}" for line in shown.splitlines() if stamp in line)

    def _sandboxes(self) -> list[str]:
        names = os.listdir(self._run_dir) if self._run_dir.is_dir() else []
        return [name for name in names if self._is_ours(name)]

    def _is_ours(self, name: str) -> bool:
        if name not in self._ours:
            record = SandboxRecord.read(self._run_dir / name)
            if record is None:
                return False  # not written yet, or removed at this moment
            self._ours[name] = record.process.pid == self._pid
        return self._ours[name]

    def _lives(self, name: str) -> bool:
        """Its agent's container has a first process."""
        try:
            return Path("/proc", (self._run_dir / name / "agent" / "pid").read_text().strip()).is_dir()
        except OSError:
            return False


def _resident_bytes(pid: int) -> int:
    """The most it ever held in memory, as the kernel counts."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def _mark_of(process: Path) -> str:
    try:
        environ = (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next((entry.decode().partition("=")[2] for entry in environ if entry.startswith(f"{MARK}=".encode())), "")
