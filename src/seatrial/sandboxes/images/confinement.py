"""What a build cannot reach: the walls around buildah's chroot isolation.

That isolation works everywhere but shares the host's processes, devices and cgroup files, and a chroot alone is left
with one system call by whoever has ``CAP_SYS_CHROOT``. So the builder runs in namespaces of its own:

* processes: a build sees and can kill none but its own, and the kernel ends all of them with the builder;
* mounts: ``/dev`` has the harmless nodes only, ``/sys`` is read-only and without cgroups; mounts vanish with the build;
* network: the public internet and nothing of this machine (see ``build_network``, which also says when not);
* IPC and host name are its own; capabilities are those below; buildah adds its seccomp filter and masked paths.

Not walled off: CPU, memory and disk are limited by the build's time only.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.sandboxes.images.build_network import BuildLine

CAPABILITIES = (
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
)
"""Docker's default set without what leads out of a chroot (SYS_CHROOT, MKNOD) or is of no use in a build."""

_MORTAL = ("setpriv", "--pdeathsig", "KILL", "--")
"""A worker that is killed takes the builder with it, and the builder's namespace everything else."""
_OWN_MOUNTS = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_SCRIPT = """\
set -e
dev=$1; names=$2; shift 2
mount -t tmpfs -o mode=755,nosuid,noexec tmpfs "$dev"
for node in null zero full random urandom tty; do
  : >"$dev/$node"; mount --bind "/dev/$node" "$dev/$node"
done
mkdir "$dev/pts" "$dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$dev/pts"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$dev/shm"
ln -s /proc/self/fd "$dev/fd"
ln -s fd/0 "$dev/stdin"; ln -s fd/1 "$dev/stdout"; ln -s fd/2 "$dev/stderr"; ln -s pts/ptmx "$dev/ptmx"
mount --move "$dev" /dev
umount -R -l /sys
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs /sys
if [ -n "$names" ] && [ -e /etc/resolv.conf ]; then mount --bind "$names" /etc/resolv.conf; fi
exec "$@"
"""


def confined(argv: Sequence[str], scratch: Path, line: BuildLine) -> list[str]:
    """The command with the walls around it. ``scratch`` is a folder of this build alone."""
    (scratch / "dev").mkdir(exist_ok=True)
    entered = [*_MORTAL, "nsenter", f"--net={line.namespace}", "--"] if line.namespace else [*_MORTAL]
    names = scratch / "resolv.conf" if line.resolv_conf else None
    if names is not None:
        names.write_text(line.resolv_conf)
    settings = [str(scratch / "dev"), str(names or "")]
    return [*entered, *_OWN_MOUNTS, "--ipc", "--uts", "--", "sh", "-c", _SCRIPT, "confined", *settings, *argv]


def own_mounts(argv: Sequence[str]) -> list[str]:
    """For our own tools: mounts that vanish with them, and no process that outlives them."""
    return [*_MORTAL, *_OWN_MOUNTS, "--", *argv]
