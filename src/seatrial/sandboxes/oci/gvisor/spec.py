"""What gVisor is told about a sandbox's two containers, made from what crun is told. Pure.

They are one gVisor sandbox, joined as Kubernetes joins the containers of a pod. The first one's process namespace is
the outer one: the verifier sees the agent's processes, under other numbers; the agent sees only its own.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from seatrial.sandboxes.oci.container_spec import OWN_SESSION

BUSYBOX = OWN_SESSION[0]
TOOLS = str(PurePosixPath(BUSYBOX).parent)
ENTER, INIT = f"{TOOLS}/enter", f"{TOOLS}/init"
READY = "ready"
_CGROUPS = "/sys/fs/cgroup"
# gVisor counts processes in cgroups of its own, which are files of the container. They are covered once the limit is
# written: a process that could write to them could lift it.
_BEGIN = (
    f"echo {{pids}} > {_CGROUPS}/pids/pids.max &&"
    f" {BUSYBOX} mount -t tmpfs -o ro,size=4k none {_CGROUPS} &&"
    f" echo {READY} && exec {INIT} < /dev/null 2> /dev/null"
)
_LEFT_OUT = ("/dev/mqueue", BUSYBOX)
_UNKNOWN_SECTIONS = ("seccomp", "cgroupsPath", "maskedPaths", "readonlyPaths")


def contained(spec: dict[str, Any], *, sandbox: str, first: bool, tools: Path, pids: int) -> dict[str, Any]:
    """``spec`` as gVisor shall have it; ``sandbox`` is the name of the first container."""
    process = spec["process"]
    names = _with_mounting(process["capabilities"]["bounding"])
    kinds = ("pid", "mount", "ipc", "uts") if first else ("pid", "mount")
    network = [entry for entry in spec["linux"]["namespaces"] if entry["type"] == "network"] if first else []
    linux = {key: value for key, value in spec["linux"].items() if key not in _UNKNOWN_SECTIONS}
    return {
        **spec,
        "annotations": _annotations(sandbox, first=first),
        "mounts": [*(entry for entry in spec["mounts"] if entry["destination"] not in _LEFT_OUT), *_own_mounts(tools)],
        "process": {
            **process,
            "args": [BUSYBOX, "sh", "-c", _BEGIN.format(pids=pids)],
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), names),
        },
        "linux": {**linux, "namespaces": [*({"type": kind} for kind in kinds), *network]},
    }


def _with_mounting(names: list[str]) -> list[str]:
    return [*names, *(name for name in ("CAP_SYS_ADMIN",) if name not in names)]


def _own_mounts(tools: Path) -> list[dict[str, Any]]:
    return [
        {"destination": _CGROUPS, "type": "cgroup", "source": "cgroup", "options": ["nosuid", "noexec", "nodev"]},
        {"destination": TOOLS, "type": "bind", "source": str(tools), "options": ["bind", "rprivate", "ro", "nodev"]},
    ]


def _annotations(sandbox: str, *, first: bool) -> dict[str, str]:
    kind = "io.kubernetes.cri.container-type"
    return {kind: "sandbox"} if first else {kind: "container", "io.kubernetes.cri.sandbox-id": sandbox}
