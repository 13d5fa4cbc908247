"""Whether gVisor works on this machine: a container is started with it. For ``doctor`` and ``--sandbox auto``."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from seatrial.sandboxes.oci.command import run_to_end
from seatrial.sandboxes.oci.gvisor.programs import tools
from seatrial.sandboxes.oci.gvisor.runsc import PLATFORM, Runsc, told
from seatrial.sandboxes.oci.gvisor.spec import BUSYBOX, TOOLS
from seatrial.sandboxes.oci.machine import Machine
from seatrial.sandboxes.selection import Finding

_PATIENCE_SEC = 60


async def probe(machine: Machine) -> Finding:
    problem = await machine.mounts.carry(_try_start, machine)
    if problem:
        fix = "Set SEATRIAL_OCI_RUNTIME to crun or runc, or leave it empty."
        return Finding(name="gVisor", ok=False, detail=f"a container does not start: {told(problem)}", fix=fix)
    return Finding(name="gVisor", ok=True, detail=f"a container was started, platform {PLATFORM}")


def _try_start(machine: Machine) -> str:
    """Returns what went wrong, or nothing."""
    machine.run_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=machine.run_dir, prefix=".probe-") as scratch:
        bundle = Path(scratch)
        (bundle / "root").mkdir()
        (bundle / "config.json").write_text(json.dumps(_spec(tools(machine.run_dir.parent, machine.busybox))))
        runsc = Runsc(machine.runtime.path, bundle / "runtime")
        patience = [str(machine.busybox), "timeout", "-s", "KILL", str(_PATIENCE_SEC)]
        return run_to_end([*patience, *runsc.run(bundle, bundle.name.lstrip("."), detach=False)])


def _spec(kept: Path) -> dict[str, object]:
    return {
        "ociVersion": "1.0.2",
        "root": {"path": "root"},
        "process": {"user": {"uid": 0, "gid": 0}, "cwd": "/", "env": [], "args": [BUSYBOX, "true"]},
        "mounts": [{"destination": TOOLS, "type": "bind", "source": str(kept), "options": ["bind", "ro"]}],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts", "network")]},
    }
