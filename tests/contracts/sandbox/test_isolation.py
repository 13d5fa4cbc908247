"""What a sandbox must not see or do: the host, the worker, the control plane, its neighbours."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest
from harbor.environments.base import BaseEnvironment

from seatrial.errors import Unsupported
from tests.contracts.sandbox.conftest import MakeSandbox
from tests.contracts.sandbox.kinds import Kind, Place, Wish

# CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, NET_RAW, SYS_CHROOT, MKNOD,
# AUDIT_WRITE, SETFCAP: what Docker gives when nobody says anything.
DOCKER_DEFAULT = 0x00000000A80425FB

# prctl(PR_GET_NO_NEW_PRIVS): gVisor answers it, but has no line for it in /proc/self/status.
NO_NEW_PRIVILEGES = "perl -e 'print syscall(157, 39, 0, 0, 0, 0)'"


async def _status(sandbox: BaseEnvironment, field: str) -> str:
    result = await sandbox.exec(f"grep '^{field}:' /proc/self/status")
    return ((result.stdout or "").split() or ["", ""])[1]


async def test_host_files_are_out_of_sight(sandbox: BaseEnvironment, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the host")
    assert (await sandbox.exec(f"cat {tmp_path}/secret /proc/1/root{tmp_path}/secret")).return_code != 0
    assert (await sandbox.exec("cat /etc/debian_version /proc/self/root/etc/debian_version")).return_code == 0


async def test_host_processes_are_out_of_sight(sandbox: BaseEnvironment) -> None:
    result = await sandbox.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert "pytest" not in (result.stdout or "")
    assert "/proc" in (result.stdout or "")  # our own command line is there


async def test_worker_environment_is_out_of_sight(make_sandbox: MakeSandbox) -> None:
    canary = uuid.uuid4().hex
    os.environ["SUITE_CANARY"] = canary
    try:
        sandbox = await make_sandbox(Wish(env={"VISIBLE": f"not-{canary[:4]}"}))
        result = await sandbox.exec("env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'")
    finally:
        del os.environ["SUITE_CANARY"]
    assert canary not in (result.stdout or "")
    assert f"not-{canary[:4]}" in (result.stdout or "")


async def test_worker_variables_are_not_resolved_into_tasks(kind: Kind, place: Place) -> None:
    """``${NAME}`` in a hostile task's environment. Refusing the task is fine; telling it the value is not."""
    canary = uuid.uuid4().hex
    os.environ["SUITE_CANARY"] = canary
    wish = Wish(env={"STOLEN": "${SUITE_CANARY}", "DEFAULTED": "${SUITE_CANARY:-harmless}"})
    try:
        sandbox = kind.create(place, wish)
    except (ValueError, Unsupported) as refusal:
        assert canary not in str(refusal)
        return
    finally:
        del os.environ["SUITE_CANARY"]
    known = {**sandbox._persistent_env, **getattr(sandbox, "_compose_task_env", {})}
    assert canary not in str(known)


async def test_capabilities_are_at_most_docker_s(sandbox: BaseEnvironment) -> None:
    for field in ("CapBnd", "CapEff", "CapPrm", "CapInh", "CapAmb"):
        # A kernel without ambient capabilities, gVisor's for one, has no line for them.
        assert int(await _status(sandbox, field) or "0", 16) & ~DOCKER_DEFAULT == 0, field
    assert int(await _status(sandbox, "CapEff"), 16) != 0  # root of a sandbox is still root there


async def test_seccomp_is_on(sandbox: BaseEnvironment) -> None:
    assert await _status(sandbox, "Seccomp") == "2"


async def test_no_new_privileges(sandbox: BaseEnvironment) -> None:
    assert (await sandbox.exec(NO_NEW_PRIVILEGES)).stdout == "1"


@pytest.mark.parametrize(
    "command",
    [
        "mount -t tmpfs none /mnt",
        "unshare --user true",
        "unshare --mount true",
        "mknod /tmp/disk b 254 0 && head -c 1 /tmp/disk",
        "echo 1 > /proc/sys/kernel/sysrq",
        "echo b > /proc/sysrq-trigger",
        "dmesg -c",
        "cat /proc/kcore | head -c 1 | grep -q .",
        "hostname changed-by-the-sandbox",
        "date -s 2001-01-01",
        "ls /sys/firmware/* | grep -q .",
        "find /sys/fs/cgroup -name release_agent -writable | grep -q .",
        "test -S /var/run/docker.sock || test -S /run/docker.sock || test -S /run/podman/podman.sock",
    ],
)
async def test_refused(sandbox: BaseEnvironment, command: str) -> None:
    assert (await sandbox.exec(command)).return_code != 0


async def test_allowed(sandbox: BaseEnvironment) -> None:
    """The twins of what is refused: root inside may do what images need root for."""
    commands = [
        "chown agent /tmp && chown root /tmp",
        "useradd someone && userdel someone",
        "mkdir -p /opt/new && rmdir /opt/new",
        "su agent -c true",
        "test -c /dev/null -a -c /dev/urandom -a -d /dev/shm -a -w /dev/shm",
        "echo x > /dev/null",
        "test -e /dev/stdin -o -L /dev/stdin",
        "cat <(echo process substitution) | grep -q process",
        "test -r /etc/hosts -a -r /etc/resolv.conf",
    ]
    for command in commands:
        assert (await sandbox.exec(command)).return_code == 0, command


async def test_machine_devices_are_absent(sandbox: BaseEnvironment) -> None:
    assert (await sandbox.exec("ls /dev/vd* /dev/sd* /dev/nvme* /dev/mem /dev/kmsg /dev/fuse 2>/dev/null")).stdout in (
        None,
        "",
    )


async def test_neighbours_are_out_of_sight(make_sandbox: MakeSandbox, sandbox: BaseEnvironment) -> None:
    neighbour = await make_sandbox()
    mark = uuid.uuid4().hex
    await neighbour.exec(
        f"echo {mark} > /tmp/{mark}; echo {mark} > /dev/shm/{mark}; (exec -a {mark} sleep 30) >/dev/null 2>&1 &"
    )
    look = f"ls /tmp /dev/shm; cat /proc/[0-9]*/cmdline | tr '\\0' ' '; true {mark[:8]}"
    assert mark not in ((await sandbox.exec(look)).stdout or "")
    assert mark in ((await neighbour.exec(look)).stdout or "")


async def test_own_hostname(sandbox: BaseEnvironment) -> None:
    name = ((await sandbox.exec("cat /proc/sys/kernel/hostname")).stdout or "").strip()
    assert name and name != os.uname().nodename
